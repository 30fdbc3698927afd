import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { majorVersion, olderNode } from '../support/older-node.ts';
import { skipFor } from '../support/skip.ts';

const binary = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));

const node = olderNode();

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-link-'));
  await symlink(binary, join(folder, 'sluice'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test(
  'a call by path or by a link, from another folder, uses the Node.js of the checkout',
  skipFor(node === undefined && 'no Node.js before 24 is installed'),
  () => {
    for (const path of [binary, join(folder, 'sluice')]) {
      const run = (...words: string[]) =>
        spawnSync(node ?? '', [path, ...words], { cwd: folder, encoding: 'utf8', env: { PATH: process.env.PATH } });
      const { stdout, stderr } = run('version', '-o', 'json');
      expect(stderr).toBe('');
      expect(majorVersion(`v${(JSON.parse(stdout) as { node: string }).node}`)).toBeGreaterThanOrEqual(24);
      // Its exit code is that of the command.
      expect(run('rpkg', 'get', '--no-such-option').status).toBe(2);
    }
  },
);
