import { execFile } from 'node:child_process';
import { cpSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fsck, git, initBare, refsOf, temporaryFolder } from '../../../../test/support/git/git-cli.ts';
import { type GitServer, startGitServer } from '../../../../test/support/git/git-server.ts';
import { commitOf } from '../../git-repository.conformance.ts';
import { openRepository } from '../../open/open-repository.ts';

const PROGRAM = new URL('../../../../test/support/git/dying-without-git.ts', import.meta.url).pathname;
/** More changes of files than a fetch or a publication makes. */
const MAX_STEPS = 60;

let folder: ReturnType<typeof temporaryFolder>;
let server: GitServer;
/** Two commits, of which `before` has the first. */
let origin: string;
let before: string;

beforeAll(async () => {
  folder = temporaryFolder();
  origin = initBare(join(folder.path, 'origin.git'));
  before = join(folder.path, 'before.git');
  const repository = await openRepository(origin);
  const files = (word: string) =>
    new Map(Array.from({ length: 50 }, (_, n) => [`${n % 5}/${n}`, { data: Buffer.from(`${word} ${n}`) }] as const));
  const tree = await repository.editTree(undefined, files('first'));
  const first = await repository.writeCommit(commitOf(tree));
  await repository.transaction([{ type: 'create', ref: 'refs/heads/main', new: first }]);
  cpSync(origin, before, { recursive: true });
  const second = await repository.writeCommit(commitOf(await repository.editTree(tree, files('second')), [first]));
  await repository.transaction([
    { type: 'update', ref: 'refs/heads/main', old: first, new: second },
    { type: 'create', ref: 'refs/heads/drafts/a/v1', new: second },
  ]);
  await repository.close();
  server = await startGitServer({ root: folder.path });
});
afterAll(async () => {
  await server.close();
  folder.remove();
});

/** Runs until it is killed; true if it came to its end. */
async function runs(path: string, action: string, step: number): Promise<boolean> {
  const words = [PROGRAM, path, action, String(step), `${server.url}/origin.git`];
  const { stdout } = await promisify(execFile)(process.execPath, words).catch((error: { stdout: string }) => error);
  return stdout === 'done';
}

test.each(['fetch', 'publish'])('killed at any step, a %s is done or not done, and can be repeated', async (action) => {
  const whole = join(folder.path, `${action}-whole.git`);
  cpSync(before, whole, { recursive: true });
  expect(await runs(whole, action, MAX_STEPS)).toBe(true);
  const after = refsOf(whole);
  expect(after.size).toBe(2);
  let packsWithoutRefs = 0;
  let done = false;
  for (let step = 0; !done; step += 1) {
    expect(step).toBeLessThan(MAX_STEPS);
    const path = join(folder.path, `${action}-${step}.git`);
    cpSync(before, path, { recursive: true });
    done = await runs(path, action, step);
    const found = refsOf(path);
    const isAfter = found.size === after.size;
    expect(found, `step ${step}`).toEqual(isAfter ? after : refsOf(before));
    fsck(path);
    const hasPack = (name: string) => /^pack-.*\.idx$/.test(name);
    const packs = (gitDir: string) => readdirSync(join(gitDir, 'objects/pack')).filter(hasPack).length;
    if (!isAfter && packs(path) > packs(before)) packsWithoutRefs += 1;
    // What is left behind is in the way of no later call.
    const next = await openRepository(path, { engine: 'isomorphic-git', timeouts: { staleLock: 0 } });
    const refspecs = ['+refs/heads/*:refs/heads/*'];
    if (action === 'fetch') {
      const again = () => next.fetch({ url: `${server.url}/origin.git` }, { refspecs });
      await again().catch(again);
      expect(refsOf(path)).toEqual(after);
    }
    expect((await next.readObjects([`${found.get('refs/heads/main')}:0/0`]))[0]).toBeDefined();
    await next.close();
    git(path, ['rev-list', '--objects', '--all', '--quiet']);
  }
  // Between the pack and the refs there are moments in which the process was killed, too.
  expect(packsWithoutRefs).toBeGreaterThan(0);
});
