// What a monitoring system and the clusters report in this example: every cluster is healthy, and a few requests fail.
//
//   node examples/fleet/metrics.mjs [port]     default 18999; prints the address, and runs until Ctrl-C
//
// GET /health/<cluster>          200 if the cluster runs the package
// GET /requests?clusters=a,b     {"requests": <number>, "errors": <number>} of these clusters
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';

const REQUESTS_PER_CLUSTER = 1000;
const ERRORS_PER_CLUSTER = 2;

/** Starts the server on this machine; 0 takes a free port. Resolves with its address and a function that ends it. */
export function startMetrics(port = 18999) {
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://127.0.0.1');
    const isHealth = pathname.startsWith('/health/');
    if (!isHealth && pathname !== '/requests') {
      response.writeHead(404).end();
      return;
    }
    const clusters = (searchParams.get('clusters') ?? '').split(/[,|]/).filter((name) => name !== '').length;
    const counts = { requests: clusters * REQUESTS_PER_CLUSTER, errors: clusters * ERRORS_PER_CLUSTER };
    const body = isHealth ? { status: 'ok' } : counts;
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      const { port: listening } = server.address();
      const close = () =>
        new Promise((closed) => {
          server.close(closed);
          server.closeAllConnections();
        });
      resolve({ address: `http://127.0.0.1:${listening}`, close });
    });
  });
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { address } = await startMetrics(process.argv[2] === undefined ? undefined : Number(process.argv[2]));
  console.log(`metrics of the clusters at ${address}`);
}
