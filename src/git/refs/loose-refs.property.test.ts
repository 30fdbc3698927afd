import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { nextFileTime } from '../../../test/support/git/file-clock.ts';
import { git, initBare, refsOf, temporaryFolder } from '../../../test/support/git/git-cli.ts';
import { runs } from '../../../test/support/runs.ts';
import { LooseRefs } from './loose-refs.ts';

const NAMES = ['heads/a', 'heads/b', 'heads/c/d', 'heads/c/e/f', 'heads/c/e/g', 'tags/v1', 'tags/c/v1', 'x/y'];

describe('loose refs', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let path: string;
  let commits: string[];
  let now: number;
  let refs: LooseRefs;
  beforeEach(() => {
    folder = temporaryFolder();
    path = initBare(join(folder.path, 'repository.git'));
    const tree = git(path, ['mktree']);
    commits = ['one', 'two', 'three'].map((message) => git(path, ['commit-tree', tree, '-m', message]));
    now = 1_000;
    refs = new LooseRefs(path, () => now);
  });
  afterEach(() => folder.remove());

  const list = async (prefix = 'refs/') => {
    const found = new Map<string, string | undefined>();
    await refs.addBelow(prefix, found);
    return found;
  };
  const write = (name: string, oid = '') => {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), `${oid}\n`);
  };

  test('every listing contains changes by git, independent of the cache', async () => {
    const step = fc.record({
      name: fc.constantFrom(...NAMES),
      value: fc.integer({ min: -1, max: 2 }),
      passes: fc.constantFrom(0, 500, 3_000, 70_000),
      looks: fc.integer({ min: 0, max: 3 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        for (const { name, value, passes, looks } of steps) {
          const old = refsOf(path).get(`refs/${name}`);
          if (value >= 0) git(path, ['update-ref', `refs/${name}`, commits[value] ?? '']);
          else if (old !== undefined) git(path, ['update-ref', '-d', `refs/${name}`]);
          // In truth hardly any time passes, and what happens in one tick is one moment for the file system.
          await nextFileTime();
          const there = refsOf(path);
          for (let look = 0; look <= looks; look += 1) {
            expect(await list()).toEqual(there);
            now += passes;
          }
          expect(await list('refs/heads/c')).toEqual(
            new Map([...there].filter(([ref]) => ref.startsWith('refs/heads/c'))),
          );
        }
      }),
      { numRuns: runs(12, 4) },
    );
  });

  test('unchanged folders are not read again, until a minute has passed', async () => {
    const [one = '', two = ''] = commits;
    write('refs/heads/deep/main', one);
    for (let look = 0; look < 3; look += 1, now += 1_500) await list();
    const file = join(path, 'refs/heads/deep/main');
    // In place, which git never does: its folder stays as it is.
    writeFileSync(file, `${two}\n`);
    expect((await list()).get('refs/heads/deep/main')).toBe(one);
    expect(refs.read('refs/heads/deep/main')).toBe(two);
    now += 60_000;
    expect((await list()).get('refs/heads/deep/main')).toBe(two);
  });

  test('two changes within one tick of the file system are two changes', async () => {
    const [one = '', two = ''] = commits;
    write('refs/heads/main', one);
    const heads = join(path, 'refs/heads');
    await list();
    now += 1_000;
    expect((await list()).get('refs/heads/main')).toBe(one);
    // As if the folder had kept its times.
    writeFileSync(join(heads, 'main'), `${two}\n`);
    now += 1_000;
    expect((await list()).get('refs/heads/main')).toBe(two);
  });

  test('a damaged ref is reported by every listing, until it is restored', async () => {
    write('refs/heads/main', 'rubbish');
    for (let look = 0; look < 4; look += 1, now += 3_000)
      await expect(list()).rejects.toThrow(/refs\/heads\/main is damaged/);
    write('refs/heads/main', commits[0]);
    expect((await list()).get('refs/heads/main')).toBe(commits[0]);
  });

  test('a folder that is removed and created again is read again', async () => {
    write('refs/heads/a/b', commits[0]);
    for (let look = 0; look < 4; look += 1, now += 3_000) await list();
    rmSync(join(path, 'refs/heads/a'), { recursive: true });
    await nextFileTime();
    expect(await list()).toEqual(new Map());
    write('refs/heads/a', commits[1]);
    await nextFileTime();
    now += 3_000;
    expect(await list()).toEqual(new Map([['refs/heads/a', commits[1]]]));
    expect(readFileSync(join(path, 'refs/heads/a'), 'latin1')).toBe(`${commits[1]}\n`);
    expect(await list('refs/none/')).toEqual(new Map());
  });
});
