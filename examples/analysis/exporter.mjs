// Shows the requests of four sites in the format of Prometheus: edge01 and edge02 have a new revision, and edge02 fails often since then.
import { createServer } from 'node:http';

const PORT = 9100;
const REQUESTS_PER_SECOND = 40;
const ERROR_RATIOS = { edge01: 0.01, edge02: 0.3, edge03: 0.01, edge04: 0.01 };
const started = Date.now();

createServer((_request, response) => {
  const requests = ((Date.now() - started) / 1000) * REQUESTS_PER_SECOND;
  const lines = Object.entries(ERROR_RATIOS).flatMap(([site, ratio]) => [
    `http_requests_total{site="${site}",code="200"} ${requests * (1 - ratio)}`,
    `http_requests_total{site="${site}",code="500"} ${requests * ratio}`,
  ]);
  response.setHeader('content-type', 'text/plain; version=0.0.4');
  response.end(`# TYPE http_requests_total counter\n${lines.join('\n')}\n`);
}).listen(PORT, '127.0.0.1');
