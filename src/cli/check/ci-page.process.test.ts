import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { CHECKOUT, PageShell } from '../../../test/support/page-shell.ts';
import { sectionsOf } from '../../../test/support/page-steps.ts';
import { type CliFixture, cliFixture } from '../testing.ts';

const page = readFileSync(join(CHECKOUT, 'docs/ci.md'), 'utf8');
const action = parse(readFileSync(join(CHECKOUT, 'examples/ci/action.yml'), 'utf8')) as {
  readonly inputs: Readonly<Record<string, { readonly default: string }>>;
  readonly runs: { readonly steps: readonly ActionStep[] };
};

interface ActionStep {
  readonly run?: string;
  readonly if?: string;
  readonly env?: Readonly<Record<string, string>>;
}

const KPTFILE = `apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: web
info:
  readinessGates:
    - conditionType: example.com/Tested
`;
const BROKEN = `apiVersion: v1
kind: ConfigMap
metadata:
  name: config
data:
  key: [a
`;

/** A clone of a repository in which a server has published, with a branch whose packages have mistakes, and a base that has moved. */
describe('docs/ci.md and its action', () => {
  let cli: CliFixture;
  let shell: PageShell;

  beforeAll(async () => {
    cli = await cliFixture();
    const remote = cli.bare('packages.git');
    expect((await cli.run('repo', 'reg', remote)).code).toBe(0);
    for (const words of [
      ['init', 'db', '--repository', 'packages', '--workspace', 'v1'],
      ['propose', 'packages.db.v1'],
      ['approve', 'packages.db.v1'],
    ])
      expect((await cli.run('rpkg', ...words)).stderr).toBe('');
    shell = await PageShell.create(cli.folder, '/dev/null', {
      // The package is not installed: this is its program.
      npx: `sh -c 'shift 5; exec "${process.execPath}" "${join(CHECKOUT, 'bin/sluice.js')}" "$@"' npx`,
    });
    const keys = await cli.run('key', 'show', '--allowed-signers');
    writeFileSync(join(cli.folder, 'allowed-signers'), keys.stdout);
    git('init', '--quiet', '--initial-branch=main');
    git('remote', 'add', 'origin', remote);
    git('pull', '--quiet', 'origin', 'main');
    write('packages/web/Kptfile', KPTFILE);
    write('keys', keys.stdout);
    commit();
    git('push', '--quiet', 'origin', 'main');
    git('checkout', '--quiet', '-b', 'change');
    write('packages/web/config.yaml', BROKEN);
    commit();
    git('checkout', '--quiet', 'main');
    write('packages/other/Kptfile', KPTFILE.replace('web', 'other'));
    write('packages/web/README.md', 'of the base\n');
    commit();
    git('push', '--quiet', 'origin', 'main');
    git('checkout', '--quiet', 'change');
  });
  afterAll(() => cli[Symbol.asyncDispose]());

  function git(...words: string[]): string {
    const identity = ['-c', 'user.name=anna', '-c', 'user.email=anna@example.com'];
    return execFileSync('git', ['-C', shell.work, ...identity, ...words], { encoding: 'utf8', stdio: 'pipe' });
  }
  function write(path: string, text: string): void {
    mkdirSync(dirname(join(shell.work, path)), { recursive: true });
    writeFileSync(join(shell.work, path), text);
  }
  function commit(): void {
    git('add', '--all');
    git('commit', '--quiet', '--message', 'change');
  }
  /** The steps of the action, as a runner executes them: with its inputs, in the folder of the checkout. */
  async function runAction(inputs: Readonly<Record<string, string>>): Promise<string[]> {
    const inputOf = (name: string) => inputs[name] ?? action.inputs[name]?.default ?? '';
    const outputs: string[] = [];
    for (const { run, env = {}, if: condition } of action.runs.steps) {
      if (run === undefined || (condition !== undefined && inputOf(condition.split(/[. ]/)[1] ?? '') === '')) continue;
      const values = Object.entries(env).map(([name, text]) => {
        const input = /^\$\{\{ inputs\.([\w-]+) \}\}$/.exec(text)?.[1];
        return `export ${name}='${inputOf(input ?? '')}'\n`;
      });
      const script = join(cli.folder, 'step.sh');
      writeFileSync(script, `set -eo pipefail\nexport RUNNER_TEMP='${cli.folder}'\n${values.join('')}${run}`);
      chmodSync(script, 0o755);
      outputs.push(await shell.run(`bash '${script}'; echo "exit $?"`));
    }
    return outputs;
  }

  for (const { title, steps } of sectionsOf(page).filter(({ steps }) => steps.length > 0))
    test(title, async () => {
      for (const step of steps) await shell.follow(step);
    });

  test('the action annotates the lines of the merge, and verifies with the keys of the base', async () => {
    git('checkout', '--quiet', '--detach', 'origin/main');
    git('merge', '--quiet', '--no-ff', '--message', 'Merge the pull request', 'change');
    // A checkout has none of them: the action fetches the id of the repository.
    git('update-ref', '-d', 'refs/sluice/repository');
    const outputs = await runAction({ package: 'sluice.tgz', 'allowed-signers': 'keys', 'require-gates': 'true' });
    expect(outputs).toHaveLength(2);
    expect(outputs[0]).toMatch(
      /^::error file=packages\/web\/config\.yaml,line=\d,col=\d,title=InvalidYaml::not valid YAML: /m,
    );
    expect(outputs[0]).toMatch(/^::error file=packages\/web\/Kptfile,line=7,col=7,title=GateClosed::gate /m);
    expect(outputs[0]).not.toContain('other');
    expect(outputs[0]).toMatch(/^exit 1$/m);
    // What was pushed past the server is reported, and the published revision counts.
    expect(outputs[1]).toContain('refs/heads/main:packages/other');
    expect(outputs[1]).toContain('2 in band, 2 out of band');
    const [first, ...others] = await runAction({ package: 'sluice.tgz' });
    expect([first, others]).toEqual([expect.stringMatching(/^exit 1$/m), []]);
  });

  test('what both sides have changed is a finding at its file, and nothing is checked out', async () => {
    git('checkout', '--quiet', 'change');
    write('packages/web/README.md', 'of the branch\n');
    commit();
    const before = git('status', '--porcelain', '--branch');
    const output = await shell.run('sluice check --base origin/main --merge');
    expect(output).toContain('packages/web/README.md:1:1: error: both origin/main and this branch have changed it');
    expect(git('status', '--porcelain', '--branch')).toBe(before);
  });
});
