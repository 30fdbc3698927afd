import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
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
  ['sluice rpkg condition set packages.web.si', ['packages.web.site.first']],
  ['sluice rpkg condition set packages.web.shop.first ', ['apps/v1.Deployment.shop', 'example.com/Reviewed']],
  ['sluice rpkg condition set --reason Tried packages.web.shop.first e', ['example.com/Reviewed']],
  ['npx sluice rpkg condition rm packages.web.shop.first apps', ['apps/v1.Deployment.shop']],
  ['sluice rpkg condition set packages.web.shop.first example.com/Reviewed ', ['False', 'True', 'Unknown']],
  ['sluice rpkg condition rm packages.web.shop.first example.com/Reviewed ', []],
  ['sluice rpkg init x --repository ', ['packages']],
  ['sluice target get edge', ['edge-east', 'edge-west']],
  ['sluice rpkg preview packages.web.shop.first --target edge-w', ['edge-west']],
];

/** A shell with this script, in an empty folder. */
interface ShellCase {
  readonly cli: CliFixture;
  readonly script: string;
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

function targetText(name: string): string {
  const spec = 'spec: {selector: {packages: [none]}, git: {repo: "https://git.example.com/site.git"}}';
  return `apiVersion: sluice.dev/v1alpha1\nkind: DeliveryTarget\nmetadata: {name: ${name}}\n${spec}\n`;
}

async function shellCase(shell: string): Promise<ShellCase & AsyncDisposable> {
  const cli = await cliFixture();
  await cli.run('repo', 'reg', cli.bare('packages.git'));
  for (const name of ['web/shop', 'web/site'])
    await cli.run('rpkg', 'init', name, '--repository', 'packages', '--workspace', 'first');
  await addGates(cli);
  const targets = join(cli.folder, 'targets.yaml');
  writeFileSync(targets, ['edge-east', 'edge-west'].map(targetText).join('---\n'));
  await cli.run('up', '--config', targets, '--no-listen', '--until-idle', '--disable', 'delivery');
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

/** A gate in the Kptfile of a draft, and one that a policy requires. */
async function addGates(cli: CliFixture): Promise<void> {
  const [name, folder] = ['packages.web.shop.first', join(cli.folder, 'shop')];
  await cli.run('rpkg', 'pull', name, folder);
  const kptfile = join(folder, 'Kptfile');
  const gate = 'info:\n  readinessGates:\n    - conditionType: apps/v1.Deployment.shop\n';
  writeFileSync(kptfile, readFileSync(kptfile, 'utf8').replace('info:\n', gate));
  expect(await cli.run('rpkg', 'push', name, folder)).toMatchObject({ code: 0 });
  const policy =
    'apiVersion: sluice.dev/v1alpha1\nkind: PackagePolicy\nmetadata: {name: review}\nspec: {requiredGates: [{conditionType: example.com/Reviewed}]}\n';
  mkdirSync(join(cli.folder, 'conf'));
  writeFileSync(join(cli.folder, 'conf', 'policy.yaml'), policy);
  expect(await cli.run('up', '--until-idle', '--config', join(cli.folder, 'conf'))).toMatchObject({ code: 0 });
}

function missing(shell: string): string | false {
  return spawnSync(shell, ['-c', 'true']).error === undefined ? false : `${shell} is not installed`;
}

describe('bash', skipFor(missing('bash')), () => {
  /** What a prepared shell offers at the end of lines, by the function that is registered for their first word. */
  function offered({ cwd, env }: ShellCase, preparation: string, lines: readonly string[]): Record<string, string[]> {
    const complete = `
      complete_line() {
        COMP_LINE="$1"; COMP_POINT=\${#1}; read -r -a COMP_WORDS <<<"$1"
        [[ "$1" == *" " ]] && COMP_WORDS+=("")
        COMP_CWORD=$(( \${#COMP_WORDS[@]} - 1 )); COMPREPLY=()
        local registered; registered="$(complete -p "\${COMP_WORDS[0]}" | sed 's/.* -F \\([^ ]*\\) .*/\\1/')"
        "$registered" "\${COMP_WORDS[0]}" "\${COMP_WORDS[COMP_CWORD]}" "\${COMP_WORDS[COMP_CWORD-1]}"
        echo "== $1"; printf '%s\\n' "\${COMPREPLY[@]}" | sort -u
      }
      for line; do complete_line "$line"; done`;
    const words = ['--norc', '-c', `${preparation}\n${complete}`, 'bash', ...lines];
    const { stdout, stderr } = spawnSync('bash', words, { cwd, env, encoding: 'utf8' });
    expect(stderr).toBe('');
    return Object.fromEntries(
      stdout.split(/^== /m).flatMap((part) => {
        const [line, ...found] = part.split('\n').filter((text) => text !== '');
        return line === undefined ? [] : [[line, found]];
      }),
    );
  }

  test('offers commands, options begun with "-", values and names', async () => {
    await using shell = await shellCase('bash');
    const lines = LINES.map(([line]) => line);
    expect(offered(shell, `source ${shell.script}`, lines)).toEqual(Object.fromEntries(LINES));
    expect(await readdir(shell.cwd)).not.toContain('hacked');
  });

  test.each([
    ['a function', '_other() { COMPREPLY=($(compgen -W "cowsay create-x" -- "$2")); }; complete -F _other npx'],
    ['words', 'complete -W "cowsay create-x" npx'],
    ['a function that is loaded when it is used', LAZY],
  ])('keeps the completion of npx for other programs: %s', async (_, before) => {
    await using shell = await shellCase('bash');
    // Sourced twice, as in a file that is read at each start of a shell.
    const preparation = `${before}\nsource ${shell.script}; source ${shell.script}`;
    expect(offered(shell, preparation, ['npx c', 'npx cowsay cr', 'npx s', 'npx cowsay s', 'npx sluice rp'])).toEqual({
      'npx c': ['cowsay', 'create-x'],
      'npx cowsay cr': ['create-x'],
      'npx s': ['sluice'],
      'npx cowsay s': [],
      'npx sluice rp': ['rpkg'],
    });
  });
});

/** As bash-completion does it. */
const LAZY = `_comp_load() {
  [[ $1 == npx ]] || return 1
  _other() { COMPREPLY=($(compgen -W "cowsay create-x" -- "$2")); }
  complete -F _other npx
}`;

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

  test('keeps the completion of npx for other programs', async () => {
    await using shell = await shellCase('zsh');
    const before = 'autoload -Uz compinit; compinit -D -u; _other() { compadd cowsay create-x }; compdef _other npx';
    const preparation = `${before}; source ${shell.script}; source ${shell.script}`;
    expect(offered(shell, preparation, ['npx c', 'npx cowsay cr', 'npx s', 'npx cowsay s', 'npx sluice rp'])).toEqual({
      'npx c': ['cowsay', 'create-x'],
      'npx cowsay cr': ['create-x'],
      'npx s': ['sluice'],
      'npx cowsay s': [],
      'npx sluice rp': ['rpkg'],
    });
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
  function offered({ cwd, env, script }: ShellCase, preparation: string, lines: readonly string[]) {
    const program = [
      preparation,
      'source $argv[1]',
      'for line in $argv[2..-1]',
      '  echo "== $line"',
      '  complete -C "$line"',
      'end',
    ].join('\n');
    const words = ['--no-config', '-c', program, script, ...lines];
    const { stdout, stderr } = spawnSync('fish', words, { cwd, env, encoding: 'utf8' });
    expect(stderr).toBe('');
    return Object.fromEntries(
      stdout.split(/^== /m).flatMap((part) => {
        const [line, ...rows] = part.split('\n').filter((text) => text !== '');
        return line === undefined ? [] : [[line, rows.map((row) => row.split('\t')[0] ?? '').sort()]];
      }),
    );
  }

  test('keeps the completion of npx for other programs', async () => {
    await using shell = await shellCase('fish');
    const before = 'complete -c npx -f -a "cowsay create-x"';
    expect(offered(shell, before, ['npx c', 'npx cowsay cr', 'npx cowsay sl', 'npx sluice rp'])).toEqual({
      'npx c': ['cowsay', 'create-x'],
      'npx cowsay cr': ['create-x'],
      'npx cowsay sl': [],
      'npx sluice rp': ['rpkg'],
    });
  });

  test('offers commands, options begun with "-", values and names', async () => {
    await using shell = await shellCase('fish');
    const lines: typeof LINES = [
      ...LINES,
      ['sluice rpkg get --lifecycle=P', ['--lifecycle=Proposed', '--lifecycle=Published']],
    ];
    const found = offered(
      shell,
      '',
      lines.map(([line]) => line),
    );
    expect(found).toEqual(Object.fromEntries(lines));
    expect(await readdir(shell.cwd)).not.toContain('hacked');
  });
});
