import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { hasKubectl } from '../support/kubectl.ts';
import { skipFor } from '../support/skip.ts';
import { Up } from '../support/up.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
/** What needs a second terminal or never ends. */
const NOT_RUN = /^(?:npx sluice up|kubectl get rpkg -w)/;
/** How the shown output of a command begins that is refused. */
const REFUSED = /^(?:Error from server|The Site "|no$)/;

interface Step {
  readonly command: string;
  /** The first line of the shown output. */
  readonly shown: string;
}

/** The commands of a page, in order, which its blocks show after "$ ". */
function stepsOf(page: string): Step[] {
  const blocks = [...page.matchAll(/^```\w*\n([\s\S]*?)^```$/gm)].map(([, text = '']) => text);
  return blocks.flatMap((block) =>
    block
      .replaceAll('\\\n', '')
      .split(/^\$ /m)
      .slice(1)
      .map((part) => {
        const [command = '', shown = ''] = part.split('\n');
        return { command, shown };
      }),
  );
}

let folder = '';
let up: Up;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-tutorial-'));
  await symlink(join(root, 'examples'), join(folder, 'examples'));
  await mkdir(join(folder, 'bin'));
  const sluice = `#!/bin/sh\nshift\nexec '${process.execPath}' '${join(root, 'bin', 'sluice.js')}' "$@"\n`;
  await writeFile(join(folder, 'bin', 'npx'), sluice);
  await writeFile(join(folder, 'bin', 'edit'), '#!/bin/sh\nsed -i "s/A database/A good database/" "$1"\n');
  for (const name of ['npx', 'edit']) await chmod(join(folder, 'bin', name), 0o755);
  up = new Up(join(folder, 'walk4'));
  await up.said(/kubectl --kubeconfig/);
});
afterAll(async () => {
  up.child.kill('SIGKILL');
  await rm(folder, { recursive: true, force: true });
});

test(
  'the commands of docs/kubectl.md work as written, and are refused where the page shows it',
  skipFor(!hasKubectl() && 'kubectl is not installed'),
  () => {
    const hasJq = spawnSync('jq', ['--version']).error === undefined;
    const steps = stepsOf(readFileSync(join(root, 'docs', 'kubectl.md'), 'utf8')).filter(
      ({ command }) => !NOT_RUN.test(command) && (hasJq || !command.includes('jq ')),
    );
    expect(steps.length).toBeGreaterThan(50);
    const script = steps.map(({ command }) => `${command}\nprintf '\\n== %s\\n' "$?"`).join('\n');
    const { stdout } = spawnSync('bash', ['--norc', '-c', `exec 2>&1\n${script}`], {
      cwd: folder,
      encoding: 'utf8',
      env: { PATH: `${join(folder, 'bin')}:${process.env.PATH}`, HOME: folder, KUBE_EDITOR: 'edit' },
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: 290_000,
    });
    const results = stdout.split(/\n== (?=\d+\n)/).slice(0, -1);
    const codes = stdout.match(/(?<=\n== )\d+(?=\n)/g) ?? [];
    const outcomes = steps.map(({ command }, at) => [command, codes[at] === '0' ? 'works' : 'is refused']);
    const wanted = steps.map(({ command, shown }) => [command, REFUSED.test(shown) ? 'is refused' : 'works']);
    expect(outcomes, results.join('\n')).toEqual(wanted);
    // What a refusal says up to the first part that differs between runs.
    for (const [at, { shown }] of steps.entries())
      if (REFUSED.test(shown)) expect(results[at]).toContain(shown.split(/ at \d|…|; /, 1)[0]);
  },
);
