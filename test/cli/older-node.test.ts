import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { skipFor } from '../support/skip.ts';

const binary = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));

/** A Node.js of this machine that is older than the one that Sluice needs. */
function olderNode(): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/local/bin', '/usr/bin'];
  return folders
    .map((folder) => join(folder, 'node'))
    .find((node) => existsSync(node) && major(execFileSync(node, ['--version'], { encoding: 'utf8' })) < 24);
}

function major(version: string): number {
  return Number(/^v(\d+)/.exec(version)?.[1]);
}

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
      expect(major(`v${(JSON.parse(stdout) as { node: string }).node}`)).toBeGreaterThanOrEqual(24);
      // Its exit code is that of the command.
      expect(run('rpkg', 'get', '--no-such-option').status).toBe(2);
    }
  },
);
