import { spawnSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CHECKOUT } from './page-shell.ts';
import type { PageStep } from './page-steps.ts';

/** Below the time of a test. */
const TIMEOUT_MS = 290_000;
/** A line that no command prints. */
const MARK = '== ';

/**
 * Runs the commands of a page one after the other in one shell, as user anna with the examples of this checkout in the folder. Returns what each
 * one printed; fewer texts if time was up.
 */
export async function runPage(steps: readonly PageStep[]): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-page-'));
  try {
    await symlink(join(CHECKOUT, 'examples'), join(folder, 'examples'));
    await mkdir(join(folder, 'bin'));
    const sluice = `#!/bin/sh\nexec '${process.execPath}' '${join(CHECKOUT, 'bin', 'sluice.js')}' "$@"\n`;
    await writeFile(join(folder, 'bin', 'sluice'), sluice);
    await chmod(join(folder, 'bin', 'sluice'), 0o755);
    const script = steps.map(({ command }) => `${command}\nprintf '\\n${MARK}\\n'`).join('\n');
    const { stdout } = spawnSync('bash', ['--norc', '-c', `exec 2>&1\n${script}`], {
      cwd: folder,
      encoding: 'utf8',
      env: {
        ...{ PATH: `${join(folder, 'bin')}:${process.env.PATH}`, HOME: folder, NO_COLOR: '1', SLUICE_USER: 'anna' },
        ...{ GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' },
      },
      timeout: TIMEOUT_MS,
    });
    return stdout.split(`\n${MARK}\n`).slice(0, -1);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** A text in which commit ids and times, which differ between runs, are the same. */
export function comparable(text: string): string {
  return text
    .replace(/\b[0-9a-f]{40}\b|\b(?=[0-9a-f]*\d)[0-9a-f]{10}\b/g, '<commit>')
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, '<time>')
    .trim();
}
