import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { sectionsOf, showsAs } from '../support/page-steps.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(join(root, 'docs', 'dependencies.md'), 'utf8');

test('the commands of docs/dependencies.md print what the page shows', { timeout: 240_000 }, async () => {
  const steps = sectionsOf(page).flatMap((section) => section.steps);
  expect(steps).toHaveLength(28);
  const folder = await mkdtemp(join(tmpdir(), 'sluice-dependencies-'));
  try {
    await symlink(join(root, 'examples'), join(folder, 'examples'));
    await mkdir(join(folder, 'bin'));
    const sluice = `#!/bin/sh\nexec '${process.execPath}' '${join(root, 'bin', 'sluice.js')}' "$@"\n`;
    await writeFile(join(folder, 'bin', 'sluice'), sluice);
    await chmod(join(folder, 'bin', 'sluice'), 0o755);
    const script = steps.map(({ command }) => `${command}\nprintf '\\n== \\n'`).join('\n');
    const { stdout } = spawnSync('bash', ['--norc', '-c', `exec 2>&1\n${script}`], {
      cwd: folder,
      encoding: 'utf8',
      env: {
        ...{ PATH: `${join(folder, 'bin')}:${process.env.PATH}`, HOME: folder, NO_COLOR: '1', SLUICE_USER: 'anna' },
        ...{ GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' },
      },
      timeout: 230_000,
    });
    const printed = stdout.split('\n== \n').slice(0, -1);
    for (const [at, { command, shown }] of steps.entries())
      expect(showsAs(printed[at] ?? '', shown), `${command}\n${printed[at]}`).toBe(true);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test('the page shows the Dependency as it is', () => {
  expect(page).toContain(readFileSync(join(root, 'examples', 'dependencies', 'dependency.yaml'), 'utf8'));
});
