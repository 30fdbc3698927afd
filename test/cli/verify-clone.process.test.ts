import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CliFixture, type CliResult, cliFixture } from '../../src/cli/testing.ts';

/** A clone as `git clone` makes it: branches and tags, and no refs/sluice/. */
describe('sluice verify in a clone without refs/sluice/', () => {
  let cli: CliFixture;
  let signers: string;

  beforeAll(async () => {
    cli = await cliFixture();
    for (const name of ['packages', 'other']) {
      cli.bare(`${name}.git`);
      await ok('repo', 'reg', join(cli.folder, `${name}.git`));
    }
    await publish('packages', 'web');
    await publish('other', 'foreign');
    execFileSync('git', ['clone', '--quiet', '--mirror', 'packages.git', 'copy.git'], { cwd: cli.folder });
    cli.git('copy.git', 'config', '--remove-section', 'remote.origin');
    // Every publication is then below the head of the main branch.
    commit('packages.git');
    signers = join(cli.folder, 'allowed-signers');
    writeFileSync(signers, await ok('key', 'show', '--allowed-signers'));
  });
  afterAll(() => cli[Symbol.asyncDispose]());

  async function ok(...words: string[]): Promise<string> {
    const { code, stdout, stderr } = await cli.run(...words);
    expect([code, stderr]).toEqual([0, expect.any(String)]);
    return stdout;
  }
  async function publish(repository: string, name: string): Promise<void> {
    await ok('rpkg', 'init', name, '--repository', repository, '--workspace', 'v1');
    await ok('rpkg', 'propose', `${repository}.${name}.v1`);
    await ok('rpkg', 'approve', `${repository}.${name}.v1`);
  }
  function commit(repository: string): void {
    const tree = cli.git(repository, 'rev-parse', 'main^{tree}');
    const oid = cli.git(repository, 'commit-tree', '-p', 'main', '-m', 'by hand', tree);
    cli.git(repository, 'update-ref', 'refs/heads/main', oid);
  }
  function clone(repository: string, name: string): string {
    execFileSync('git', ['clone', '--quiet', repository, name], { cwd: cli.folder });
    return join(cli.folder, name);
  }
  const verify = (place: string, ...words: string[]): Promise<CliResult> =>
    cli.run('verify', place, '--allowed-signers', signers, ...words);

  test('publications below other commits of the main branch are in band', async () => {
    const { code, stdout, stderr } = await verify(clone('packages.git', 'honest'));
    expect([code, stdout]).toEqual([0, '1 in band, 0 out of band\n']);
    expect(stderr).toContain('refs/sluice/repository is missing: only the publications show that this is ');
  });

  test('a clone without one of the commits of its history is damaged', async () => {
    const place = join(cli.folder, 'damaged');
    // With objects of its own, each in a file.
    execFileSync('git', ['clone', '--quiet', '--no-hardlinks', 'packages.git', place], { cwd: cli.folder });
    const oid = cli.git('packages.git', 'rev-parse', 'main~1').trim();
    rmSync(join(place, '.git', 'objects', oid.slice(0, 2), oid.slice(2)));
    const { code, stdout, stderr } = await verify(place);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain(`the history is not complete: commit ${oid} does not exist`);
  });

  test('a tag that was copied from another repository is still out of band, and only that one', async () => {
    const place = clone('packages.git', 'attacked');
    execFileSync('git', ['fetch', '--quiet', '../other.git', 'refs/tags/foreign/v1:refs/tags/foreign/v1'], {
      cwd: place,
    });
    const { code, stdout } = await verify(place, '-o', 'json');
    const { verified } = JSON.parse(stdout) as { verified: { ref: string; finding?: { reason: string } }[] };
    expect([code, verified.map(({ ref, finding }) => [ref, finding?.reason])]).toEqual([
      1,
      [
        ['refs/tags/foreign/v1', 'OtherRepository'],
        ['refs/tags/web/v1', undefined],
      ],
    ]);
  });

  test('with the key of another server the key is what is wrong', async () => {
    const data = join(cli.folder, 'data-of-others');
    await ok('repo', 'reg', 'sluice:///x.git', '--create-branch', '--data', data);
    const foreign = join(cli.folder, 'foreign-signers');
    writeFileSync(foreign, await ok('key', 'show', '--allowed-signers', '--data', data));
    const place = clone('packages.git', 'other-key');
    const { code, stdout } = await cli.run('verify', place, '--allowed-signers', foreign);
    expect([code, stdout]).toEqual([1, expect.stringContaining('UntrustedKey')]);
    expect(stdout).not.toContain('OtherRepository');
  });

  test('publications for two repositories decide nothing until the printed command has fetched the id', async () => {
    await cli.run('repo', 'reg', join(cli.folder, 'copy.git'));
    await ok('repo', 'adopt', 'copy', '--new-id', '--yes');
    await ok('repo', 'sync', 'copy');
    await publish('copy', 'db');
    const place = clone('copy.git', 'two');
    const { code, stdout, stderr } = await verify(place);
    expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining('no refs/sluice/repository')]);
    const [, command = ''] = /(git fetch .*) brings it/.exec(stderr) ?? [];
    execFileSync('sh', ['-c', command], { cwd: place, stdio: 'pipe' });
    const whole = await verify(place);
    expect([whole.code, whole.stdout]).toEqual([1, expect.stringMatching(/refs\/tags\/web\/v1 +OtherRepository/)]);
    expect(whole.stdout).not.toMatch(/refs\/tags\/db\/v1 /);
  });

  test.each([
    ['both tags', 'fast-forward', []],
    ['only the foreign tag', 'fast-forward-no-tag', ['refs/tags/web/v1']],
  ])(
    'a main branch that was fast-forwarded to a merge with another repository decides nothing, with %s',
    async (_, name, deleted) => {
      execFileSync('git', ['clone', '--quiet', '--bare', 'packages.git', `${name}.git`], { cwd: cli.folder });
      const foreign = ['main:refs/heads/foreign', 'refs/tags/foreign/v1:refs/tags/foreign/v1'];
      execFileSync('git', ['fetch', '--quiet', '../other.git', ...foreign], { cwd: join(cli.folder, `${name}.git`) });
      const tree = cli.git(`${name}.git`, 'rev-parse', 'foreign^{tree}');
      const merge = cli.git(`${name}.git`, 'commit-tree', '-p', 'foreign', '-p', 'main', '-m', 'merge', tree);
      cli.git(`${name}.git`, 'update-ref', 'refs/heads/main', merge);
      for (const ref of ['refs/heads/foreign', ...deleted]) cli.git(`${name}.git`, 'update-ref', '-d', ref);
      const { code, stdout, stderr } = await verify(clone(`${name}.git`, name));
      expect([code, stdout]).toEqual([2, '']);
      expect(stderr).toContain("git fetch origin '+refs/sluice/*:refs/sluice/*' brings it");
    },
  );

  test('a user who merges the main branch into an own commit does not change which repository it is', async () => {
    execFileSync('git', ['clone', '--quiet', '--bare', 'packages.git', 'merged.git'], { cwd: cli.folder });
    const root = cli.git('merged.git', 'rev-list', '--max-parents=0', 'main');
    const own = cli.git('merged.git', 'commit-tree', '-p', root, '-m', 'own', `${root}^{tree}`);
    const merge = cli.git('merged.git', 'commit-tree', '-p', own, '-p', 'main', '-m', 'merge', 'main^{tree}');
    cli.git('merged.git', 'update-ref', 'refs/heads/main', merge);
    const { stderr, stdout } = await verify(clone('merged.git', 'merged'));
    expect([stdout, stderr]).toEqual([
      expect.not.stringContaining('OtherRepository'),
      expect.stringContaining('only the publications show that this is '),
    ]);
  });

  test('a folder that is not there is an error, as nothing in it was checked', async () => {
    const place = clone('packages.git', 'misspelt');
    execFileSync('git', ['fetch', '--quiet', 'origin', '+refs/sluice/*:refs/sluice/*'], { cwd: place });
    const { code, stdout, stderr } = await verify(place, '--directory', 'foo');
    expect([code, stdout, stderr]).toEqual([
      2,
      '',
      expect.stringContaining('there is no folder foo on the branch main, and no revision of a package in it'),
    ]);
  });

  test('a folder that a new Repository does not have yet is a note', async () => {
    cli.bare('new.git');
    await ok('repo', 'reg', join(cli.folder, 'new.git'), '--directory', 'pkgs');
    const { code, stdout, stderr } = await verify(join(cli.folder, 'new.git'), '--directory', 'pkgs');
    expect([code, stdout]).toEqual([0, expect.stringContaining('1 in band, 0 out of band')]);
    expect(stderr).toContain('there is no folder pkgs on the branch main yet');
  });
});
