import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { abandonedFolders, makeOwnFolder } from './own-folder.ts';

test('only folders of ended processes are abandoned', async () => {
  const parent = await mkdtemp(join(tmpdir(), 'sluice-own-'));
  const { pid: removed } = spawnSync('true');
  expect(basename(await makeOwnFolder(parent, 'work-'))).toMatch(new RegExp(`^work-${process.pid}-`));
  for (const name of [
    `work-${removed}-abcdef`,
    'work-1-abcdef',
    `other-${removed}-abcdef`,
    `work-${removed}`,
    'work-x-abcdef',
  ])
    await mkdir(join(parent, name));
  expect(await abandonedFolders(parent, 'work-')).toEqual([join(parent, `work-${removed}-abcdef`)]);
  await rm(parent, { recursive: true });
});
