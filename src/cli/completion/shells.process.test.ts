import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { skipFor } from '../../../test/support/skip.ts';
import { type CliFixture, cliFixture, runCli } from '../testing.ts';

const ZSH_COMPLETIONS = fileURLToPath(new URL('../../../test/support/zsh-completions.zsh', import.meta.url));

/** What is offered at the end of a line; files are not, since there are none in the folder. */
const LINES: readonly (readonly [line: string, offered: readonly string[]])[] = [
  ['sluice rp', ['rpkg']],
  ['sluice help rp', ['rpkg']],
  ['sluice rpkg pro', ['propose', 'propose-delete']],
  ['npx sluice rpkg pro', ['propose', 'propose-delete']],
  ['npx sl', ['sluice']],
  ['sluice rpkg get --life', ['--lifecycle']],
  ['sluice rpkg get -o n', ['name']],
  ['sluice rpkg get --lifecycle P', ['Proposed', 'Published']],
  ['sluice completion ', ['bash', 'fish', 'zsh']],
  ['sluice up --log ', ['json', 'text']],
  ['sluice kptfile lint ', []],
  ['sluice kptfile condition se', ['set']],
  ['sluice fn doc set-na', ['set-name-prefix', 'set-namespace']],
  // The argument is the name of a command with other options.
  ['sluice rpkg init demo --se', []],
  ['sluice rpkg approve --kube', ['--kubeconfig']],
  ['sluice rpkg approve packages.w', ['packages.web.shop.first', 'packages.web.site.first']],
  ['sluice repo get p', ['packages']],
  ['sluice rpkg init x --repository ', ['packages']],
];

/** A shell with this script, in an empty folder. */
interface ShellCase {
  readonly cli: CliFixture;
  readonly script: string;
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

async function shellCase(shell: string): Promise<ShellCase & AsyncDisposable> {
  const cli = await cliFixture();
  await cli.run('repo', 'reg', cli.bare('packages.git'));
  for (const name of ['web/shop', 'web/site'])
    await cli.run('rpkg', 'init', name, '--repository', 'packages', '--workspace', 'first');
  // A user who can push chooses names of branches; a shell must not run them.
  cli.git('packages.git', 'update-ref', `refs/heads/drafts/web/$(touch\${IFS}hacked)/v1`, 'main');
  const { stdout } = await runCli(['completion', shell]);
  // The file name that the completion system of zsh looks for.
  const script = join(cli.folder, 'scripts', '_sluice');
  const cwd = join(cli.folder, 'empty');
  for (const folder of [cwd, join(cli.folder, 'scripts')]) mkdirSync(folder);
  writeFileSync(script, stdout);
  const env = { PATH: process.env.PATH, HOME: cwd, XDG_CONFIG_HOME: join(cli.folder, 'config'), SLUICE_DATA: cli.data };
  return { cli, script, cwd, env, [Symbol.asyncDispose]: () => cli[Symbol.asyncDispose]() };
}

function missing(shell: string): string | false {
  return spawnSync(shell, ['-c', 'true']).error === undefined ? false : `${shell} is not installed`;
}

describe('zsh', skipFor(missing('zsh')), () => {
  function offered({ cwd, env }: ShellCase, preparation: string, lines: readonly string[]): Record<string, string[]> {
    const output = execFileSync('zsh', ['-f', ZSH_COMPLETIONS, preparation, ...lines], { cwd, env, encoding: 'utf8' });
    return Object.fromEntries(
      output.split(/^== /m).flatMap((part) => {
        const [line, ...words] = part.split('\n').filter((text) => text !== '');
        return line === undefined ? [] : [[line, words]];
      }),
    );
  }

  test('offers commands, options begun with "-", values and names, in a terminal', async () => {
    await using shell = await shellCase('zsh');
    const lines: typeof LINES = [
      ...LINES,
      ['sluice rpkg get --lifecycle=P', ['Proposed', 'Published']],
      ['sluice kptfile ', ['check', 'condition', 'gates', 'lint']],
    ];
    // Without compinit before, as in a new account.
    const found = offered(
      shell,
      `source ${shell.script}`,
      lines.map(([line]) => line),
    );
    expect(found['sluice kptfile ']).not.toContain('--help');
    expect({ ...found, 'sluice kptfile ': [] }).toEqual({ ...Object.fromEntries(lines), 'sluice kptfile ': [] });
    expect(await readdir(shell.cwd)).not.toContain('hacked');
  });

  test('finds the script in a folder of functions', async () => {
    await using shell = await shellCase('zsh');
    const preparation = `fpath=(${shell.cli.folder}/scripts $fpath); autoload -Uz compinit; compinit -D -u`;
    expect(offered(shell, preparation, ['sluice rp', 'sluice rpkg pro'])).toEqual({
      'sluice rp': ['rpkg'],
      'sluice rpkg pro': ['propose', 'propose-delete'],
    });
  });
});

describe('fish', skipFor(missing('fish')), () => {
  test('offers commands, options begun with "-", values and names', async () => {
    await using shell = await shellCase('fish');
    const lines: typeof LINES = [
      ...LINES,
      ['sluice rpkg get --lifecycle=P', ['--lifecycle=Proposed', '--lifecycle=Published']],
    ];
    const script = [
      'source $argv[1]',
      'for line in $argv[2..-1]',
      '  echo "== $line"',
      '  complete -C "$line"',
      'end',
    ].join('\n');
    const words = ['--no-config', '-c', script, shell.script, ...lines.map(([line]) => line)];
    const { cwd, env } = shell;
    const { stdout, stderr } = spawnSync('fish', words, { cwd, env, encoding: 'utf8' });
    expect(stderr).toBe('');
    const found = stdout.split(/^== /m).flatMap((part) => {
      const [line, ...rows] = part.split('\n').filter((text) => text !== '');
      return line === undefined ? [] : [[line, rows.map((row) => row.split('\t')[0]).sort()]];
    });
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(lines));
    expect(await readdir(cwd)).not.toContain('hacked');
  });
});
