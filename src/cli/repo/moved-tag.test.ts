import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type CliFixture, cliFixture } from '../testing.ts';

let cli: CliFixture;
let repository: string;
beforeEach(async () => {
  cli = await cliFixture();
  repository = join(cli.data, 'repositories', 'apps.git');
  await ok('repo', 'reg', 'sluice:///apps.git', '--create-branch');
  await ok('rpkg', 'init', 'web', '--repository', 'apps', '--workspace', 'v1');
});
afterEach(() => cli[Symbol.asyncDispose]());

async function ok(...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await cli.run(...words);
  expect([words.join(' '), code, stderr]).toEqual([words.join(' '), 0, expect.any(String)]);
  return stdout;
}

function git(...words: string[]): string {
  const who = ['-c', 'user.name=eve', '-c', 'user.email=eve@example.com'];
  return execFileSync('git', [...who, '--git-dir', repository, ...words], { encoding: 'utf8' }).trim();
}

test('adoption warns of a tag that was moved away from a publication', async () => {
  await ok('rpkg', 'propose', 'apps.web.v1');
  await ok('rpkg', 'approve', 'apps.web.v1', '--as', 'bob');
  const approved = git('rev-parse', 'web/v1');
  const other = git('commit-tree', '-p', approved, '-m', 'another', `${approved}^{tree}`);
  git('update-ref', 'refs/tags/web/v1', other);
  const text = `warning: refs/tags/web/v1 was moved away from the publication at ${approved}, which was approved; adopting ${other} in its place replaces what was approved`;
  const { code, stderr } = await cli.run('repo', 'adopt', 'apps');
  expect([code, stderr]).toEqual([0, expect.stringContaining(text)]);
  expect((await cli.run('repo', 'adopt', 'apps', '--yes')).stderr).toContain(text);
});

test('a tag that was made by hand is not called approved by the author of its commit', async () => {
  const draft = git('rev-parse', 'drafts/web/v1');
  git('update-ref', 'refs/tags/web/v1', draft);
  git('update-ref', '-d', 'refs/heads/drafts/web/v1');
  const { code, stderr } = await cli.run('rpkg', 'approve', 'apps.web.v1', '--as', 'bob');
  expect(code).toBe(1);
  expect(stderr).toContain('it is published as v1, without an approval that counts (NotAnApproval)');
  expect(stderr).not.toContain('approved by');
});

test('the gates of an adopted package are counted as "sluice why" counts them', async () => {
  const kptfile = `apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: web
info:
  readinessGates:
    - conditionType: example.com/Tested
`;
  const write = (input: string, ...words: string[]) =>
    execFileSync('git', ['--git-dir', repository, ...words], { input, encoding: 'utf8' }).trim();
  const blob = write(kptfile, 'hash-object', '-w', '--stdin');
  const folder = write(`100644 blob ${blob}\tKptfile\n`, 'mktree');
  const tree = write(`040000 tree ${folder}\tweb\n`, 'mktree');
  git('update-ref', '-d', 'refs/heads/drafts/web/v1');
  git('update-ref', 'refs/tags/web/v1', git('commit-tree', '-p', 'main', '-m', 'by hand', tree));
  await ok('repo', 'adopt', 'apps', '--yes');
  const [row] = JSON.parse(await ok('rpkg', 'get', '-o', 'json')).items.filter(
    ({ spec }: { spec: { revision: number } }) => spec.revision === 1,
  );
  expect(JSON.stringify(row.status.conditions)).toContain('1 of 1 gates closed');
  expect(await ok('why', row.metadata.name)).toContain('0 of 1 open');
});
