import { expect, test } from 'vitest';
import { initBare, temporaryFolder } from '../../../test/support/git/git-cli.ts';
import { processesWith } from '../../../test/support/git/processes.ts';
import { commitOf } from '../git-repository.conformance.ts';
import { EMPTY_TREE } from '../git-repository.ts';
import { openRepository } from '../open/open-repository.ts';

test('many repositories that were used keep few processes, and all can be used again', async () => {
  const folder = temporaryFolder();
  const paths = Array.from({ length: 20 }, (_, number) => initBare(`${folder.path}/${number}.git`));
  const writers = await Promise.all(paths.map((path) => openRepository(path, { packRefsFrom: 1_000 })));
  const readers = await Promise.all(paths.map((path) => openRepository(path)));
  // A few are read without a process.
  const many = (oid: string) => Array.from({ length: 100 }, () => oid);
  const commits: string[] = [];
  for (const [number, writer] of writers.entries()) {
    await writer.editTree(undefined, new Map());
    const oid = await writer.writeCommit(commitOf(EMPTY_TREE, [], `${number}\n`));
    await writer.transaction([{ type: 'create', ref: 'refs/heads/main', new: oid }]);
    expect((await readers[number]?.readObjects(many(oid)))?.at(-1)?.oid).toBe(oid);
    commits.push(oid);
  }
  const running = () => processesWith(folder.path).length;
  await expect.poll(running).toBeLessThanOrEqual(32);
  expect(running()).toBeGreaterThan(0);
  // All at once they may have one each.
  const read = await Promise.all(
    readers.map(async (reader, number) => (await reader.readObjects(many(commits[number] ?? ''))).at(-1)?.oid),
  );
  expect(read).toEqual(commits);
  await Promise.all(
    writers.map((writer, number) =>
      writer.transaction([{ type: 'delete', ref: 'refs/heads/main', old: commits[number] ?? '' }]),
    ),
  );
  await Promise.all([...writers, ...readers].map((repository) => repository.close()));
  await expect.poll(running).toBe(0);
  folder.remove();
});
