/**
 * A process that makes one ref transaction by a new packed-refs, and kills itself before a certain change of files.
 * Arguments: repository, JSON of the updates, how many changes of files are made before, the folder whose lock it has (default: none).
 * Prints `done` if it lived on.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { openRepository } from '../../../src/git/open/open-repository.ts';
import { holdFolder } from '../../../src/git/refs/held-folders.ts';

const [path = '', updates = '[]', steps = '0', held = ''] = process.argv.slice(2);
if (held !== '') holdFolder(held);
const repository = await openRepository(path, { engine: 'native', packRefsFrom: 1 });
let left = Number(steps);
function die<Call extends (...parameters: never[]) => unknown>(call: Call): Call {
  return ((...parameters: Parameters<Call>) => {
    if (left === 0) process.kill(process.pid, 'SIGKILL');
    left -= 1;
    return call(...parameters);
  }) as Call;
}
// All locks are taken by then, and go last.
fs.renameSync = die(fs.renameSync);
fs.promises.open = die(fs.promises.open);
fs.promises.rm = die(fs.promises.rm);
syncBuiltinESMExports();
await repository.transaction(JSON.parse(updates));
fs.writeSync(1, 'done');
process.kill(process.pid, 'SIGKILL');
