import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type CliFixture, cliFixture } from '../testing.ts';
import { upstreamAddress } from './upstream-argument.ts';

let cli: CliFixture;
beforeAll(async () => {
  cli = await cliFixture();
  await cli.run('repo', 'reg', cli.bare('blueprints.git'));
  await cli.run('repo', 'reg', cli.bare('edge.git'), '--deployment');
  cli.bare('foreign.git');
});
afterAll(() => cli[Symbol.asyncDispose]());

async function publish(name: string): Promise<void> {
  expect((await cli.run('rpkg', 'propose', name)).stderr).toBe('');
  expect((await cli.run('rpkg', 'approve', name)).stderr).toBe('');
}

/** Changes one file of a draft by pulling and pushing it. */
async function edit(name: string, file: string, text: string): Promise<void> {
  const folder = join(cli.folder, `${name}-${file}`);
  await cli.run('rpkg', 'pull', name, folder);
  await writeFile(join(folder, file), text);
  expect((await cli.run('rpkg', 'push', name, folder)).stdout).toBe(`${name} pushed\n`);
}

const rows = (stdout: string) => stdout.split('\n').map((line) => line.split(/ {2,}/));

test('clone, discover, upgrade', async () => {
  await cli.run('rpkg', 'init', 'upf', '--repository', 'blueprints', '--workspace', 'v1');
  await edit('blueprints.upf.v1', 'notes.txt', 'one\n');
  await publish('blueprints.upf.v1');
  expect(await cli.run('rpkg', 'clone', 'blueprints.upf.v1', 'edge-upf', '--repository', 'edge')).toMatchObject({
    code: 0,
    stdout: 'edge.edge-upf.v1 created\n',
  });
  expect(
    (await cli.run('rpkg', 'clone', 'blueprints.upf.v1', 'edge-upf', '--repository', 'edge', '--workspace', 'v2'))
      .stderr,
  ).toContain('`clone` cannot create a new revision for package "edge-upf" that already exists in repo "edge"');
  expect((await cli.run('rpkg', 'clone', 'blueprints.ufp.v1', 'other', '--repository', 'edge')).stderr).toContain(
    'did you mean blueprints.upf.v1?',
  );
  const early = await cli.run('rpkg', 'upgrade', 'edge.edge-upf.v1', '--workspace', 'v2');
  expect(early).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('it must be in a published state, not "Draft"'),
  });
  await publish('edge.edge-upf.v1');
  expect((await cli.run('rpkg', 'upgrade', 'edge.edge-upf.v1', '--workspace', 'v2')).stderr).toContain(
    'no update available: blueprints.upf.v1 is the latest revision of its package',
  );
  expect((await cli.run('rpkg', 'upgrade', '--discover=downstream')).stdout).toBe(
    'All downstream packages are up to date.\n',
  );

  for (const workspace of ['v2', 'v3']) {
    await cli.run('rpkg', 'copy', 'blueprints.upf.v1', '--workspace', workspace);
    await edit(`blueprints.upf.${workspace}`, 'notes.txt', `${workspace}\n`);
    await publish(`blueprints.upf.${workspace}`);
  }
  const tree = [
    ['PACKAGE', 'LATEST', 'FROM', 'BEHIND', 'OPEN'],
    ['blueprints/upf', 'v3'],
    ['└─ edge/edge-upf', 'v1', 'v1', '2'],
    [''],
  ];
  expect(rows((await cli.run('rpkg', 'tree')).stdout)).toEqual(tree);
  expect(rows((await cli.run('rpkg', 'tree', '--behind', 'edge/edge-upf')).stdout)).toEqual(tree);
  expect((await cli.run('rpkg', 'tree', 'edge/ufp')).stderr).toContain('package "edge/ufp" not found');
  expect(rows((await cli.run('rpkg', 'upgrade', 'edge.edge-upf.v1', '--discover=upstream')).stdout)).toEqual([
    ['PACKAGE REVISION', 'UPSTREAM REPOSITORY', 'UPSTREAM UPDATES'],
    ['edge.edge-upf.v1', 'blueprints', 'v2, v3'],
    [''],
  ]);
  const listed = await cli.run('rpkg', 'upgrade', 'blueprints.upf.v3', '--discover=downstream', '-o', 'json');
  expect(JSON.parse(listed.stdout)).toContainEqual(
    expect.objectContaining({ revision: 'blueprints.upf.v3', downstream: 'edge.edge-upf.v1', to: 'v3' }),
  );
  const named = await cli.run('rpkg', 'upgrade', 'edge.edge-upf.v1', '--discover=upstream', '-o', 'json');
  expect(JSON.parse(named.stdout)).toMatchObject([
    { revision: 'edge.edge-upf.v1', upstreamRepository: 'blueprints', updates: expect.any(Array) },
  ]);
  expect(rows((await cli.run('rpkg', 'upgrade', 'blueprints.upf.v3', '--discover=downstream')).stdout)).toEqual([
    ['PACKAGE REVISION', 'DOWNSTREAM PACKAGE', 'DOWNSTREAM UPDATE'],
    ['blueprints.upf.v3', 'edge.edge-upf.v1', 'v1->v3'],
    [''],
  ]);
  expect(
    (await cli.run('rpkg', 'upgrade', 'edge.edge-upf.v1', '--workspace', 'v2', '--revision', '9')).stderr,
  ).toContain('revision 9 does not exist for package upf; it has v3, v2, v1');
  expect(await cli.run('rpkg', 'upgrade', 'edge.edge-upf.v1', '--workspace', 'v2', '--revision', '2')).toMatchObject({
    code: 0,
    stdout: 'edge.edge-upf.v1 upgraded to edge.edge-upf.v2\n',
  });
  expect((await cli.run('rpkg', 'diff', 'edge.edge-upf.v2')).stdout).toContain('-one\n+v2\n');
  await publish('edge.edge-upf.v2');
  await cli.run('rpkg', 'upgrade', 'edge.edge-upf.v2', '--workspace', 'v3', '--strategy', 'fast-forward');
  // What was superseded is not upgraded any more.
  expect(rows((await cli.run('rpkg', 'upgrade', '--discover=upstream')).stdout)).toEqual([
    ['PACKAGE REVISION', 'UPSTREAM REPOSITORY', 'UPSTREAM UPDATES'],
    ['edge.edge-upf.v2', 'blueprints', 'v3'],
    ['edge.edge-upf.v3', 'blueprints', 'No update available'],
    [''],
  ]);
  expect(rows((await cli.run('rpkg', 'upgrade', '--discover=downstream')).stdout)).toEqual([
    ['PACKAGE REVISION', 'DOWNSTREAM PACKAGE', 'DOWNSTREAM UPDATE'],
    ['blueprints.upf.v3', 'edge.edge-upf.v2', 'v2->v3'],
    [''],
  ]);
  const folder = join(cli.folder, 'latest');
  await cli.run('rpkg', 'pull', 'edge.edge-upf.v3', folder);
  expect(await readFile(join(folder, 'notes.txt'), 'utf8')).toBe('v3\n');
  expect(await readFile(join(folder, 'package-context.yaml'), 'utf8')).toContain('name: edge-upf\n');
  // What others come from is not deleted.
  await cli.run('rpkg', 'propose-delete', 'blueprints.upf.v1');
  expect((await cli.run('rpkg', 'del', 'blueprints.upf.v1')).stderr).toContain('edge.edge-upf.v1');
});

test('an upgrade reports the local values that upstream has overwritten, also in its structured output', async () => {
  const config = (value: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  key: ${value}\n`;
  await cli.run('rpkg', 'init', 'smf', '--repository', 'blueprints', '--workspace', 'v1');
  await edit('blueprints.smf.v1', 'c.yaml', config('one'));
  await publish('blueprints.smf.v1');
  await cli.run('rpkg', 'clone', 'blueprints.smf.v1', 'edge-smf', '--repository', 'edge');
  await edit('edge.edge-smf.v1', 'c.yaml', config('mine'));
  await publish('edge.edge-smf.v1');
  await cli.run('rpkg', 'copy', 'blueprints.smf.v1', '--workspace', 'v2');
  await edit('blueprints.smf.v2', 'c.yaml', config('two'));
  await publish('blueprints.smf.v2');
  const warning = 'changed on both sides, and overwritten by upstream: ConfigMap/c data.key (was mine) in c.yaml';
  const upgrade = (workspace: string, ...words: string[]) =>
    cli.run('rpkg', 'upgrade', 'edge.edge-smf.v1', '--workspace', workspace, ...words);
  expect(await upgrade('v2')).toMatchObject({ code: 0, stderr: `warning: ${warning}\n` });
  const upgraded = { upgradedFrom: 'edge.edge-smf.v1', upstream: 'blueprints.smf.v2', warnings: [warning] };
  expect(JSON.parse((await upgrade('v3', '-o', 'json')).stdout)).toEqual({ revision: 'edge.edge-smf.v3', ...upgraded });
  expect((await upgrade('v4', '-o', 'yaml')).stdout).toContain(`warnings:\n  - '${warning}'\n`);
});

test('a package of a repository that is not registered', async () => {
  const kptfile = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: smf\n';
  await writeFile(join(cli.folder, 'Kptfile'), kptfile);
  const blob = cli.git('foreign.git', 'hash-object', '-w', join(cli.folder, 'Kptfile'));
  const folder = cli.tree('foreign.git', `100644 blob ${blob}\tKptfile\n`);
  const root = cli.tree('foreign.git', `040000 tree ${folder}\tsmf\n`);
  cli.git('foreign.git', 'update-ref', 'refs/heads/main', cli.git('foreign.git', 'commit-tree', '-m', 'smf', root));
  const source = `${join(cli.folder, 'foreign.git')}/smf@main`;
  expect(await cli.run('rpkg', 'clone', source, 'smf', '--repository', 'edge')).toMatchObject({
    code: 0,
    stdout: 'edge.smf.v1 created\n',
  });
  const { stdout } = await cli.run('rpkg', 'get', 'edge.smf.v1', '-o', 'yaml');
  expect(stdout).toContain(`repo: ${join(cli.folder, 'foreign.git')}`);
  await publish('edge.smf.v1');
  const upgrade = await cli.run('rpkg', 'upgrade', 'edge.smf.v1', '--workspace', 'v2');
  expect(upgrade).toMatchObject({ code: 1, stderr: expect.stringContaining('is in no registered repository') });
});

test('what is wrong with a command line', async () => {
  const cases: [string[], string][] = [
    [['upgrade'], 'name the one package revision'],
    [['upgrade', 'edge.a.v1'], '--workspace is required'],
    [['upgrade', 'edge.a.v1', '--workspace', 'v2', '--revision', '-1'], '--revision must be positive'],
    [['upgrade', 'edge.a.v1', '--workspace', 'v2', '--strategy', 'hope'], 'Allowed choices are'],
    [
      ['clone', 'https://a/b.git/x@v1', 'p', '--repository', 'edge', '--ref', 'v2'],
      'ref v2 specified by --ref contradicts',
    ],
  ];
  for (const [words, message] of cases) {
    expect(await cli.run('rpkg', ...words)).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
  }
});

test('upstreamAddress distinguishes addresses from names', () => {
  expect(upstreamAddress('blueprints.upf.v1', {})).toBeUndefined();
  const parse = (text: string, options = {}) => Object.values(upstreamAddress(text, options) ?? {});
  expect(parse('https://h/o/r.git/a/b@v1')).toEqual(['https://h/o/r.git', 'a/b', 'v1']);
  expect(parse('https://h/o/r.git')).toEqual(['https://h/o/r.git', '/', 'main']);
  expect(parse('https://h/o/r.git@feature/x')).toEqual(['https://h/o/r.git', '/', 'feature/x']);
  expect(parse('https://h/o/r', { directory: 'a', ref: 'v2' })).toEqual(['https://h/o/r', 'a', 'v2']);
  expect(parse('/srv/r.git/a/', { secretRef: 's' })).toEqual(['/srv/r.git', 'a/', 'main', { name: 's' }]);
});
