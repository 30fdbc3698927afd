import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openLocation } from './open-location.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-location-'));
});
afterEach(() => rm(folder, { recursive: true }));

test('a repository in the data folder is created when it is first opened, for its owner only, and has one address', async () => {
  const hostedFolder = join(folder, 'repositories');
  const mirrorPath = join(folder, 'mirror');
  for (let round = 0; round < 2; round += 1) {
    const { git, remote } = await openLocation({ url: 'sluice:///web.git', mirrorPath, hostedFolder });
    expect([git.path, remote]).toEqual([join(hostedFolder, 'web.git'), undefined]);
    await git.close();
  }
  expect((await stat(hostedFolder)).mode & 0o777).toBe(0o700);
  const path = join(hostedFolder, 'web.git');
  for (const url of [
    path,
    pathToFileURL(path).href,
    join(folder, '.', 'repositories', '..', 'repositories', 'web.git'),
  ])
    await expect(openLocation({ url, mirrorPath, hostedFolder })).rejects.toThrow(/use sluice:\/\/\/web\.git/);
  await expect(openLocation({ url: 'sluice:///web.git', mirrorPath })).rejects.toMatchObject({ code: 'InvalidInput' });
});

test('only what can be fetched again may be lost on a crash of the machine', async () => {
  const local = { url: 'sluice:///web.git', mirrorPath: join(folder, 'none'), hostedFolder: join(folder, 'hosted') };
  const elsewhere = { url: 'https://git.example/web.git', mirrorPath: join(folder, 'mirror') };
  for (const [options, durable] of [
    [{ ...local, repairsMirror: true }, true],
    [elsewhere, true],
    [{ ...elsewhere, repairsMirror: true }, false],
  ] as const) {
    const { git } = await openLocation(options);
    expect(git.capabilities.durable).toBe(durable);
    await git.close();
  }
});
