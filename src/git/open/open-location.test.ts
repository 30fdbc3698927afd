import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { GitRemote } from '../git-repository.ts';
import { DEFAULT_NETWORK } from '../network/git-network.ts';
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

test('where repositories are remote only, no address leads to the disk of the server', async () => {
  const repository = { network: { ...DEFAULT_NETWORK, isRemoteOnly: true } };
  const places = { mirrorPath: join(folder, 'mirror'), hostedFolder: join(folder, 'hosted'), repository };
  for (const url of [folder, pathToFileURL(folder).href, 'FILE:///etc', 'sluice:///web.git'])
    await expect(openLocation({ url, ...places })).rejects.toMatchObject({ code: 'Refused' });
  const { git } = await openLocation({ url: 'https://git.example/web.git', ...places });
  await git.close();
});

test('a process that may not write now pushes nothing', async () => {
  const expectMayPush = () => {
    throw new SluiceError('Unavailable', 'the lease has expired');
  };
  const { git, remote } = await openLocation({
    url: 'https://git.example/web.git',
    mirrorPath: join(folder, 'mirror'),
    repository: { network: { ...DEFAULT_NETWORK, expectMayPush } },
  });
  const update = { type: 'create', ref: 'refs/heads/main', new: 'a'.repeat(40) } as const;
  await expect(git.push(remote as GitRemote, [update])).rejects.toThrow('the lease has expired');
  await git.close();
});
