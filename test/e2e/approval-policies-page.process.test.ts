import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(join(root, 'docs', 'approval-policies.md'), 'utf8');

/** Commit ids and times differ between runs. */
function comparable(text: string): string {
  return text
    .replace(/\b[0-9a-f]{40}\b|\b(?=[0-9a-f]*\d)[0-9a-f]{10}\b/g, '<commit>')
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, '<time>')
    .trim();
}

test('the commands of docs/approval-policies.md print what the page shows', { timeout: 240_000 }, async () => {
  const blocks = [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, text = '']) => text);
  const steps = blocks.flatMap((block) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map((part) => {
        const at = part.indexOf('\n');
        return { command: part.slice(0, at), shown: part.slice(at + 1) };
      }),
  );
  expect(steps.length).toBeGreaterThan(10);
  const folder = await mkdtemp(join(tmpdir(), 'sluice-approvals-'));
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
    const outcomes = steps.map(({ command }, at) => [command, comparable(printed[at] ?? '')]);
    expect(outcomes).toEqual(steps.map(({ command, shown }) => [command, comparable(shown)]));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test('the page shows the example as it is', () => {
  expect(page).toContain(readFileSync(join(root, 'examples', 'approval-policies', 'canary.yaml'), 'utf8'));
});
