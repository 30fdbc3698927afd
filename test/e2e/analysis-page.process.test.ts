import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { hasKubectl } from '../support/kubectl.ts';
import { sectionsOf, showsAs } from '../support/page-steps.ts';
import { skipFor } from '../support/skip.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(join(root, 'docs', 'analysis.md'), 'utf8');

function missing(): string | undefined {
  if (!hasKubectl()) return 'kubectl is not installed';
  const { error } = spawnSync('prometheus', ['--version']);
  return error === undefined ? undefined : 'prometheus is not installed';
}

test(
  'the commands of docs/analysis.md print what the page shows, with a real Prometheus',
  skipFor(missing()),
  async () => {
    const [exporter, server] = [await freePort(), await freePort()];
    const withPorts = (text: string) => text.replaceAll('9100', String(exporter)).replaceAll('9090', String(server));
    const steps = sectionsOf(withPorts(page)).flatMap((section) => section.steps);
    expect(steps).toHaveLength(11);
    const folder = await mkdtemp(join(tmpdir(), 'sluice-analysis-'));
    try {
      const examples = join(folder, 'examples', 'analysis');
      cpSync(join(root, 'examples', 'analysis'), examples, { recursive: true });
      for (const name of await readdir(examples)) {
        const file = join(examples, name);
        await writeFile(file, withPorts(await readFile(file, 'utf8')));
      }
      await mkdir(join(folder, 'bin'));
      const npx = `#!/bin/sh\nshift\nexec '${process.execPath}' '${join(root, 'bin', 'sluice.js')}' "$@"\n`;
      await writeFile(join(folder, 'bin', 'npx'), npx);
      await writeFile(join(folder, 'bin', 'node'), `#!/bin/sh\nexec '${process.execPath}' "$@"\n`);
      for (const name of ['npx', 'node']) await chmod(join(folder, 'bin', name), 0o755);
      const script = steps.map(({ command }) => `${command}\nprintf '\\n== \\n'`).join('\n');
      const { stdout } = spawnSync('bash', ['--norc', '-c', `exec 2>&1\ntrap 'kill $(jobs -p)' EXIT\n${script}`], {
        cwd: folder,
        encoding: 'utf8',
        env: { PATH: `${join(folder, 'bin')}:${process.env.PATH}`, HOME: folder, NO_COLOR: '1' },
        stdio: ['ignore', 'pipe', 'inherit'],
        timeout: 290_000,
      });
      const printed = stdout.split('\n== \n').slice(0, -1);
      for (const [at, { command, shown }] of steps.entries())
        expect(showsAs(printed[at] ?? '', shown), `${command}\n${printed[at]}`).toBe(true);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
);

test('the page shows the template as it is', () => {
  expect(page).toContain(readFileSync(join(root, 'examples', 'analysis', 'error-ratio.yaml'), 'utf8'));
});
