import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { fsck, initBare, refsOf, temporaryFolder } from '../../../../test/support/git/git-cli.ts';
import { startGitServer } from '../../../../test/support/git/git-server.ts';
import { runs } from '../../../../test/support/runs.ts';
import { commitOf } from '../../git-repository.conformance.ts';
import type { Oid, RefUpdate } from '../../git-repository.ts';
import { openRepository } from '../../open/open-repository.ts';

const LARGE = 'some text that makes a file worth a delta\n'.repeat(300);

/** Files at few paths with few contents, so that trees come back, move and are copied. */
const edit = fc.record({
  path: fc.constantFrom('a', 'b/c', 'b/d', 'e/f/g', 'e/f/h', 'e/i'),
  text: fc.constantFrom('1', '2', LARGE, `${LARGE}1`, `2${LARGE}`, null),
});
const step = fc.record({
  parents: fc.array(fc.nat(), { maxLength: 2 }),
  edits: fc.array(edit, { maxLength: 4 }),
  push: fc.boolean(),
});

test('whatever the history, what is sent completes what the server has', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
      const folder = temporaryFolder();
      const origin = initBare(join(folder.path, 'origin.git'));
      const server = await startGitServer({ root: folder.path });
      const repository = await openRepository(initBare(join(folder.path, 'local.git')));
      const remote = { url: `${server.url}/origin.git` };
      try {
        const commits: Oid[] = [];
        let waiting: RefUpdate[] = [];
        for (const [index, { parents, edits, push }] of steps.entries()) {
          const chosen = [...new Set(parents.map((number) => commits[number % Math.max(1, commits.length)]))].filter(
            (oid) => oid !== undefined,
          );
          const changes = new Map(
            edits.map(({ path, text }) => [path, text === null ? null : { data: Buffer.from(text) }]),
          );
          const tree = await repository.editTree(chosen[0], changes);
          const oid = await repository.writeCommit(commitOf(tree, chosen, `${index}`));
          commits.push(oid);
          waiting.push({ type: 'create', ref: `refs/heads/c${index}`, new: oid });
          if (!push && index < steps.length - 1) continue;
          await repository.push(remote, waiting);
          waiting = [];
          fsck(origin);
        }
        expect(refsOf(origin).size).toBe(commits.length);
        expect(repository.remoteNote?.message).toBe(`${remote.url}: push by own client`);
      } finally {
        await repository.close();
        await server.close();
        folder.remove();
      }
    }),
    { numRuns: runs(15, 4) },
  );
});
