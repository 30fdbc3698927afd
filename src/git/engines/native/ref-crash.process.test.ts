import { execFile } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { git, initBare, refsOf, temporaryFolder } from '../../../../test/support/git/git-cli.ts';
import { commitOf } from '../../git-repository.conformance.ts';
import { EMPTY_TREE, type RefUpdate } from '../../git-repository.ts';
import { openRepository } from '../../open/open-repository.ts';

const WRITER = new URL('../../../../test/support/git/dying-writer.ts', import.meta.url).pathname;

test('killed at any step, a transaction that packs refs is there as a whole or not at all, and can be made again', async () => {
  const folder = temporaryFolder();
  const origin = initBare(join(folder.path, 'origin.git'));
  const repository = await openRepository(origin, { packRefsFrom: 1_000 });
  await repository.editTree(undefined, new Map());
  const [a = '', b = ''] = [
    await repository.writeCommit(commitOf(EMPTY_TREE, [], 'a')),
    await repository.writeCommit(commitOf(EMPTY_TREE, [], 'b')),
  ];
  await repository.transaction(['packed', 'both', 'gone'].map((name) => create(`refs/heads/${name}`, a)));
  git(origin, ['pack-refs', '--all']);
  // Beside the packed one stands a newer loose one; others are only loose.
  await repository.transaction([
    { type: 'update', ref: 'refs/heads/both', old: a, new: b },
    create('refs/heads/loose/x', a),
    create('refs/heads/leaves/y', a),
  ]);
  const tag = await repository.writeTag({
    object: a,
    type: 'commit',
    name: 't',
    tagger: commitOf(EMPTY_TREE).author,
    message: 't',
  });
  await repository.transaction([create('refs/tags/t', tag)]);
  await repository.close();
  const updates: RefUpdate[] = [
    { type: 'update', ref: 'refs/heads/packed', old: a, new: b },
    { type: 'update', ref: 'refs/heads/both', old: b, new: a },
    { type: 'update', ref: 'refs/heads/loose/x', old: a, new: b },
    { type: 'delete', ref: 'refs/heads/leaves/y', old: a },
    { type: 'delete', ref: 'refs/heads/gone', old: a },
    { type: 'delete', ref: 'refs/tags/t', old: tag },
    create('refs/tags/new/t', tag),
    create('refs/heads/new/z', b),
  ];
  const before = refsOf(origin);
  const after = new Map([...before].map(([name, oid]) => [name, oid === a ? b : a]));
  for (const name of ['refs/heads/leaves/y', 'refs/heads/gone', 'refs/tags/t']) after.delete(name);
  after.set('refs/tags/new/t', tag).set('refs/heads/new/z', b);
  const seen = { before: 0, after: 0 };
  for (let step = 0, done = false; !done; step += 1) {
    const path = join(folder.path, `${step}.git`);
    cpSync(origin, path, { recursive: true });
    const { stdout } = await promisify(execFile)(process.execPath, [
      WRITER,
      path,
      JSON.stringify(updates),
      String(step),
    ]).catch((error: { stdout: string }) => error);
    done = stdout === 'done';
    const found = new Map([...refsOf(path)].sort());
    const isAfter = found.has('refs/heads/new/z');
    seen[isAfter ? 'after' : 'before'] += 1;
    expect(found, `step ${step}`).toEqual(new Map([...(isAfter ? after : before)].sort()));
    // Git knows what tags lead to, also where it looks into packed-refs only.
    expect(git(path, ['show-ref', '-d'])).toContain(`${a} refs/tags/${isAfter ? 'new/' : ''}t^{}`);
    // Locks that were left behind are in the way once, and no longer.
    const next = await openRepository(path, { packRefsFrom: 1, timeouts: { staleLock: 0 } });
    expect(new Map((await next.listRefs()).map(({ name, oid }) => [name, oid]))).toEqual(found);
    const again: RefUpdate[] = isAfter ? [...after].map(([ref, old]) => ({ type: 'delete', ref, old })) : updates;
    await next.transaction(again).catch(() => next.transaction(again));
    expect(refsOf(path)).toEqual(isAfter ? new Map() : refsOf(path));
    if (!isAfter) expect(new Map([...refsOf(path)].sort())).toEqual(new Map([...after].sort()));
    await next.close();
  }
  expect(seen.before).toBeGreaterThan(5);
  expect(seen.after).toBeGreaterThan(1);
  folder.remove();
});

function create(ref: string, oid: string): RefUpdate {
  return { type: 'create', ref, new: oid };
}
