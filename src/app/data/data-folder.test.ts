import { chmod, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runCli } from '../../cli/testing.ts';
import { createDataFolder, dataFolder } from './data-folder.ts';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'sluice-data-'));
});
afterEach(async () => {
  await chmod(root, 0o700);
  await rm(root, { recursive: true, force: true });
});

test('a data folder is made with its parents, for its owner only, also by two processes at once', async () => {
  const folder = dataFolder(join(root, 'a', 'b'));
  await Promise.all([createDataFolder(folder), createDataFolder(folder)]);
  expect((await stat(folder.path)).mode & 0o777).toBe(0o700);
  expect((await stat(join(root, 'a'))).mode & 0o777).toBe(0o700);
});

test('a place where no folder can be made is an error at once', async () => {
  await writeFile(join(root, 'file'), '');
  for (const path of ['/proc/sluice-data/x', join(root, 'file'), join(root, 'file', 'x')])
    await expect(createDataFolder(dataFolder(path))).rejects.toMatchObject({
      ...{
        code: 'Unavailable',
        message: expect.stringMatching(/^cannot make the data folder .*--data or SLUICE_DATA$/),
      },
    });
});

test('a folder without a database has no packages to list, which is an error and makes none', async () => {
  const data = join(root, 'data');
  await mkdir(data);
  const { code, stdout, stderr } = await runCli(['rpkg', 'get', '--data', data]);
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(/^error: the data folder \S+ has no database .*"sluice repo reg --data \S+"/);
  await expect(stat(dataFolder(data).database)).rejects.toMatchObject({ code: 'ENOENT' });
});

test('serve ends at once when its cache folder cannot be made, and names its own option', async () => {
  const { code, stderr } = await runCli(['serve', '--cache-dir', '/proc/sluice-cache/x', '--log', 'text']);
  expect(code).toBe(2);
  expect(stderr).toMatch(
    /^error: cannot make the cache folder \/proc\/sluice-cache\/x: .*; name another one with --cache-dir$/m,
  );
});
