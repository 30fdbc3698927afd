/**
 * A process that advances one ref by commits, for tests with several writers or with kill -9.
 * Arguments: repository, ref, number of commits, label, and from how many updates on refs are packed. Prints each commit that was acknowledged on a line of its own.
 */
import { writeSync } from 'node:fs';
import { RefConflictError } from '../../../src/git/errors.ts';
import { openRepository } from '../../../src/git/open/open-repository.ts';

const [path = '', ref = '', count = '0', label = '', packRefsFrom = ''] = process.argv.slice(2);
const repository = await openRepository(path, {
  engine: 'native',
  packRefsFrom: Number(packRefsFrom),
  timeouts: { staleLock: 300 },
});
const person = { name: label, email: 'writer@example.com', time: 1_700_000_000_000 };
for (let done = 0; done < Number(count); ) {
  const old = (await repository.resolveRef(ref)) ?? '';
  const tree = await repository.editTree(
    old,
    new Map([[`${label}/${done}`, { data: Buffer.from(`${label} ${done}`) }]]),
  );
  const commit = { tree, parents: [old], author: person, committer: person, message: `${label} ${done}\n` };
  const next = await repository.writeCommit(commit);
  try {
    await repository.transaction([
      { type: 'update', ref, old, new: next },
      { type: 'create', ref: `refs/tags/${label}/${done}`, new: next },
    ]);
    writeSync(1, `${next}\n`);
    done += 1;
  } catch (error) {
    if (!(error instanceof RefConflictError)) throw error;
  }
}
await repository.close();
