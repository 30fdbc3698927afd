import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runCli } from '../testing.ts';

const KPTFILE = (name: string, more = '') =>
  `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: ${name}\n${more}`;
const LABELS = `pipeline:
  mutators:
    - image: ghcr.io/kptdev/krm-functions-catalog/set-labels:v0.2
      configMap:
        team: shop
`;
const SERVICE = (labels = '') => `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\n${labels}data: {}\n`;

describe('sluice check', () => {
  let root: string;
  beforeEach(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'sluice-check-')));
    git('init', '--quiet', '--initial-branch=main');
    await write('web/Kptfile', KPTFILE('web'));
    await write('db/Kptfile', KPTFILE('db'));
    commit();
    git('checkout', '--quiet', '-b', 'change');
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  function git(...words: string[]): string {
    const identity = ['-c', 'user.name=anna', '-c', 'user.email=anna@example.com'];
    return execFileSync('git', ['-C', root, ...identity, ...words], { stdio: 'pipe', encoding: 'utf8' });
  }
  async function write(path: string, text: string): Promise<void> {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
  function commit(): void {
    git('add', '--all');
    git('commit', '--quiet', '--message', 'change');
  }
  const check = (...words: string[]) => runCli(['check', root, '--base', 'main', ...words], {});
  /** Codes with their files, relative to the root. */
  async function findings(...words: string[]) {
    const { stdout, code } = await check('-o', 'json', ...words);
    const report = JSON.parse(stdout) as {
      packages: string[];
      findings: { file: string; line: number; column: number; severity: string; code: string; message: string }[];
    };
    const found = report.findings.map((one) => ({
      ...one,
      file: join(process.cwd(), one.file).slice(root.length + 1),
    }));
    return { packages: report.packages, found, code };
  }

  test('checks only what the branch changes, in the outermost package, whatever is removed or outside of packages', async () => {
    await write('README.md', 'text');
    await write('web/nested/Kptfile', KPTFILE('nested'));
    await rm(join(root, 'db'), { recursive: true });
    commit();
    expect(await findings()).toEqual({ packages: ['web'], found: [], code: 0 });
    expect((await check()).stderr).toContain('1 package checked, 0 errors');
  });

  test('reports mistakes in Kptfiles and YAML with their place', async () => {
    await write('web/Kptfile', `${KPTFILE('web')}foo: 1\n`);
    await write('db/broken.yaml', 'a: [1\n');
    commit();
    const { found, code } = await findings();
    expect(code).toBe(1);
    expect(found).toEqual([
      expect.objectContaining({ file: 'db/broken.yaml', line: 1, severity: 'error', code: 'InvalidYaml' }),
      expect.objectContaining({ file: 'web/Kptfile', line: 5, severity: 'error', code: 'UnknownField' }),
    ]);
  });

  test('a package whose pipeline would change files is not rendered; with its result committed it is', async () => {
    await write('web/Kptfile', KPTFILE('web', LABELS));
    await write('web/map.yaml', SERVICE());
    commit();
    const { found, code } = await findings();
    expect(code).toBe(1);
    expect(found).toEqual([expect.objectContaining({ file: 'web/Kptfile', code: 'NotRendered', severity: 'error' })]);
    expect(found[0]?.message).toContain('run "sluice fn render web" and commit the result');
    expect((await runCli(['fn', 'render', join(root, 'web')], {})).code).toBe(0);
    commit();
    expect((await findings()).found.filter(({ severity }) => severity === 'error')).toEqual([]);
  });

  test('runs no program and no container', async () => {
    await write('web/Kptfile', KPTFILE('web', `pipeline:\n  mutators:\n    - exec: touch ${join(root, 'was-here')}\n`));
    await write('db/Kptfile', KPTFILE('db', 'pipeline:\n  mutators:\n    - image: example.com/mine:v1\n'));
    commit();
    const { found, code } = await findings();
    expect(found.map(({ file, severity, code: what }) => `${file} ${severity} ${what}`)).toEqual([
      'db/Kptfile warning NotRendered',
      'web/Kptfile warning NotRendered',
    ]);
    expect(found[0]?.message).toContain('containers are not allowed; it is not run by "sluice check"');
    expect(code).toBe(0);
    await expect(realpath(join(root, 'was-here'))).rejects.toThrow('ENOENT');
  });

  test('closed gates are notices, and errors where they are required', async () => {
    await write('web/Kptfile', KPTFILE('web', 'info:\n  readinessGates:\n    - conditionType: Tested\n'));
    commit();
    expect(await findings()).toMatchObject({ code: 0, found: [{ severity: 'notice', code: 'GateClosed' }] });
    const { found } = await findings();
    const lines = (await readFile(join(root, 'web/Kptfile'), 'utf8')).split('\n');
    expect(lines[(found[0]?.line ?? 0) - 1]).toBe('    - conditionType: Tested');
    expect(found[0]?.column).toBe(7);
    expect(await findings('--require-gates')).toMatchObject({ code: 1, found: [{ severity: 'error' }] });
  });

  test('annotations of GitHub cannot be forged by names or texts of a branch', async () => {
    await write('web/Kptfile', KPTFILE('web', 'info:\n  readinessGates:\n    - conditionType: "a%0A::error::b"\n'));
    await write('db,x/Kptfile', KPTFILE('db'));
    await write('db,x/a\n::error::b.yaml', 'a: [1\n');
    commit();
    const { stdout } = await check('-o', 'github');
    const lines = stdout.trimEnd().split('\n');
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(/^::error file=.*db%2Cx\/a%0A%3A%3Aerror%3A%3Ab\.yaml,line=1,col=5,title=InvalidYaml::/);
    expect(lines[1]).toMatch(/^::notice .*::gate a%250A::error::b is closed/);
  });

  test.each([
    ['committed', ['--base', 'main']],
    ['in the index', ['--base', 'main']],
    ['in the working tree', ['--base', 'main']],
    ['committed', ['--base', 'main', '--merge']],
  ])('links and submodules that a branch brings are errors, as for the server: %s %s', async (where, words) => {
    await symlink('/etc', join(root, 'web', 'etc'));
    await symlink('/etc/hostname', join(root, 'web', 'host.yaml'));
    await rm(join(root, 'db', 'Kptfile'));
    await symlink('../web/Kptfile', join(root, 'db', 'Kptfile'));
    if (where !== 'in the working tree') {
      git('add', '--all');
      git('update-index', '--add', '--cacheinfo', `160000,${git('rev-parse', 'HEAD').trim()},web/sub`);
      await mkdir(join(root, 'web', 'sub'));
    }
    if (where === 'committed') git('commit', '--quiet', '--message', 'change');
    const { found, code, packages } = await findings(...words);
    expect([code, packages]).toEqual([1, ['db', 'web']]);
    expect(found.map((one) => `${one.file} ${one.code} ${one.severity}`)).toEqual([
      'db/Kptfile NotAFile error',
      'web/etc NotAFile error',
      'web/host.yaml NotAFile error',
      ...(where === 'in the working tree' ? [] : ['web/sub NotAFile error']),
    ]);
    if (where === 'committed' && words.length === 2)
      expect(await findings('--all')).toMatchObject({
        code: 1,
        found: [
          { file: 'db/Kptfile', severity: 'error', code: 'NotAFile' },
          { file: 'web/Kptfile', severity: 'warning', code: 'Skipped' },
        ],
      });
  });

  test('a file or package that a folder or link replaces is no submodule', async () => {
    await write('web/a', 'text');
    await write('one/Kptfile', KPTFILE('one'));
    commit();
    git('branch', '--force', 'main');
    await rm(join(root, 'web', 'a'));
    await write('web/a/b.yaml', SERVICE());
    await rm(join(root, 'one'), { recursive: true });
    await symlink('db', join(root, 'one'));
    expect(await findings()).toEqual({ packages: ['web'], found: [], code: 0 });
  });

  test('checks the files as they are, committed or not, and no ignored ones', async () => {
    await write('.gitignore', 'ignored/\n');
    commit();
    await write('web/Kptfile', `${KPTFILE('web')}foo: 1\n`);
    await write('new/Kptfile', KPTFILE('new'));
    await write('new/broken.yaml', 'a: [1\n');
    await write('staged/Kptfile', KPTFILE('staged', 'foo: 1\n'));
    git('add', 'staged');
    await write('ignored/Kptfile', KPTFILE('ignored', 'foo: 1\n'));
    const { found, code, packages } = await findings();
    expect([code, packages]).toEqual([1, ['new', 'staged', 'web']]);
    expect(found.map((one) => `${one.file} ${one.code}`)).toEqual([
      'new/broken.yaml InvalidYaml',
      'staged/Kptfile UnknownField',
      'web/Kptfile UnknownField',
    ]);
    // What the base has changed since the branch began is not checked.
    git('stash', '--quiet', '--include-untracked');
    git('checkout', '--quiet', 'main');
    await write('db/Kptfile', `${KPTFILE('db')}foo: 1\n`);
    commit();
    git('checkout', '--quiet', 'change');
    git('stash', 'pop', '--quiet');
    expect((await findings()).packages).toEqual(['new', 'staged', 'web']);
    expect(await findings('--merge')).toEqual({ packages: [], found: [], code: 0 });
  });

  test('names what git refuses', async () => {
    expect((await check('--base', 'nowhere')).stderr).toContain('there is no commit "nowhere"; fetch it first');
    expect((await check('--base', '--output=x')).code).toBe(2);
  });

  test.each(['web/plain.yaml', 'web/Kptfile'])('of a conflict in %s it reports nothing else', async (file) => {
    const text = (word: string) =>
      file.endsWith('Kptfile') ? KPTFILE('web', `info: {description: ${word}}\n`) : `a: ${word}\n`;
    await write(file, text('here'));
    commit();
    git('checkout', '--quiet', 'main');
    await write(file, text('there'));
    commit();
    git('checkout', '--quiet', 'change');
    await write('web/bad.yaml', 'a: [1\n');
    commit();
    const { found, code } = await findings('--merge');
    expect(code).toBe(1);
    // What the branch changes besides is checked.
    expect(found.map((one) => [one.file, one.code])).toEqual([
      [file, 'MergeConflict'],
      ['web/bad.yaml', 'InvalidYaml'],
    ]);
  });

  test('names a folder that is not there, or is none', async () => {
    for (const words of [[], ['--all']]) {
      const { code, stderr } = await runCli(['check', join(root, 'nope'), ...words], {});
      expect([code, stderr]).toEqual([2, `error: there is no folder "${join(root, 'nope')}"\n`]);
    }
    expect((await runCli(['check', join(root, 'web', 'Kptfile')], {})).stderr).toMatch(/Kptfile" is not a folder\n$/);
    const outside = await mkdtemp(join(tmpdir(), 'sluice-check-'));
    const { code, stderr } = await runCli(['check', outside], {});
    expect([code, stderr]).toEqual([2, expect.stringContaining(`"${outside}" is in no Git working tree`)]);
    expect(stderr).toContain('--all');
    await rm(outside, { recursive: true });
  });

  test('says what a clone lacks', async () => {
    await write('web/a.yaml', SERVICE());
    commit();
    const apart = () => git('commit-tree', '-m', 'other', 'HEAD^{tree}').trim();
    expect((await check('--base', apart())).stderr).toMatch(/no commit in common; name a base of the same history/);
    const whole = root;
    root = `${whole}-shallow`;
    try {
      execFileSync('git', ['clone', '--quiet', '--depth=1', `file://${whole}`, root]);
      const before = await check('--merge', '--base', 'HEAD^1');
      expect(before.stderr).toMatch(/this shallow clone has no commit "HEAD\^1"; .*--unshallow/);
      const other = await check('--merge', '--base', apart());
      expect(other.stderr).toMatch(/no commit in common; the clone is shallow: /);
    } finally {
      await rm(root, { recursive: true, force: true });
      root = whole;
    }
  });

  test('--all checks every package below a folder, in Git or not', async () => {
    await rm(join(root, '.git'), { recursive: true });
    expect(await findings('--all')).toMatchObject({ packages: ['db', 'web'], code: 0 });
  });
});
