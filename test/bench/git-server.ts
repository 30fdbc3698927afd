// A Git server in a process of its own, so that it does not share the event loop of the measured process: `node git-server.ts <folder>`.
import { startGitServer } from '../support/git/git-server.ts';

const server = await startGitServer({ root: process.argv[2] ?? '.' });
console.log(server.url);
process.stdin.resume().on('end', () => process.exit());
