// A Git server in a process of its own, so that it does not share the event loop of the measured process: `node git-server.ts <folder>`.
// It prints its address, and for each line of its input how many requests of each kind it got since the last one.
import { createInterface } from 'node:readline';
import { startGitServer } from '../support/git/git-server.ts';

const server = await startGitServer({ root: process.argv[2] ?? '.' });
console.log(server.url);
let counted = 0;
createInterface({ input: process.stdin })
  .on('line', () => {
    const counts = { pushes: 0, fetches: 0, listings: 0 };
    for (const { method, url, fetches } of server.requests.slice(counted)) {
      if (method === 'POST' && url.endsWith('/git-receive-pack')) counts.pushes += 1;
      else if (fetches === true) counts.fetches += 1;
      else counts.listings += 1;
    }
    counted = server.requests.length;
    console.log(JSON.stringify(counts));
  })
  .on('close', () => process.exit());
