import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildOnce } from './built-once.ts';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-built-once-'));
});
afterAll(() => rm(folder, { recursive: true }));

test('builds a file once, also for callers at the same time', async () => {
  const path = join(folder, 'shared', 'program');
  let builds = 0;
  const build = async (unfinished: string) => {
    builds += 1;
    await writeFile(unfinished, `build ${builds}`);
  };
  await Promise.all([buildOnce(path, build), buildOnce(path, build), buildOnce(path, build)]);
  await buildOnce(path, build);
  expect(builds).toBe(1);
  expect(await readFile(path, 'utf8')).toBe('build 1');
});

test('a build that fails leaves no file, and the next caller builds again', async () => {
  const path = join(folder, 'failing', 'program');
  const failing = buildOnce(path, async (unfinished) => {
    await writeFile(unfinished, 'half');
    throw new Error('the compiler failed');
  });
  await expect(failing).rejects.toThrow('the compiler failed');
  expect((await readdir(join(folder, 'failing'))).filter((name) => !name.startsWith('program.lock'))).toEqual([]);
  await buildOnce(path, (unfinished) => writeFile(unfinished, 'whole'));
  expect(await readFile(path, 'utf8')).toBe('whole');
});
