/**
 * A process that uses a repository without git, and kills itself before a certain change of files.
 * Arguments: repository, what to do (`fetch` or `publish`), how many changes of files are made before, and for `fetch` the address of
 * the remote. Prints `done` if it lived on.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { openRepository } from '../../../src/git/open/open-repository.ts';

const [path = '', action = '', steps = '0', url = ''] = process.argv.slice(2);
const repository = await openRepository(path, { engine: 'isomorphic-git' });
let left = Number(steps);
function die<Call extends (...parameters: never[]) => unknown>(call: Call): Call {
  return ((...parameters: Parameters<Call>) => {
    if (left === 0) process.kill(process.pid, 'SIGKILL');
    left -= 1;
    return call(...parameters);
  }) as Call;
}
fs.renameSync = die(fs.renameSync);
fs.promises.open = die(fs.promises.open);
fs.promises.rename = die(fs.promises.rename);
fs.promises.rm = die(fs.promises.rm);
syncBuiltinESMExports();
if (action === 'fetch') {
  await repository.fetch({ url }, { refspecs: ['+refs/heads/*:refs/heads/*'] });
} else {
  const files = Array.from({ length: 60 }, (_, n) => [`new/${n}`, { data: Buffer.from(`${n}`) }] as const);
  const main = (await repository.resolveRef('refs/heads/main')) ?? '';
  const person = { name: 'Test', email: 'test@example.com', time: 1_700_000_000_000 };
  const tree = await repository.editTree(main, new Map(files));
  const message = 'publish\n';
  const commit = await repository.writeCommit({ tree, parents: [main], author: person, committer: person, message });
  await repository.transaction([
    { type: 'update', ref: 'refs/heads/main', old: main, new: commit },
    { type: 'create', ref: 'refs/tags/new/v1', new: commit },
  ]);
}
fs.writeSync(1, 'done');
process.kill(process.pid, 'SIGKILL');
