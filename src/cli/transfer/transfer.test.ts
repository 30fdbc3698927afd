import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadAll } from 'js-yaml';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { dataFolder } from '../../app/data/data-folder.ts';
import { applyConfig, readConfig } from '../../app/session/apply-config.ts';
import { Session } from '../../app/session/session.ts';
import { type CliFixture, cliFixture, runCli } from '../testing.ts';
import { MAX_TRANSFER_CHARACTERS } from './transfer-limits.ts';

const OBJECTS = `apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: sluice.dev/v1alpha1
kind: PackagePolicy
metadata: {name: reviewed, namespace: team, labels: {team: shop}}
spec: {selector: {repositories: [apps]}, requiredGates: [{conditionType: example.com/Reviewed}]}
---
apiVersion: v1
kind: Secret
metadata: {name: apps-auth, namespace: team}
stringData: {password: hunter2}
---
apiVersion: v1
kind: Secret
metadata: {name: issued, namespace: team, annotations: {kubernetes.io/service-account.name: robot}}
type: kubernetes.io/service-account-token
stringData: {token: t0ken}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: owner, namespace: team}
data: {a: b}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: ipam.resource.nephio.org/v1alpha1
kind: NetworkInstance
metadata: {name: vpc}
spec: {prefixes: [{prefix: 10.0.0.0/16}]}
`;

let cli: CliFixture;
let source: string;
let target: string;
let file: string;
beforeEach(async () => {
  cli = await cliFixture();
  [source, target, file] = ['source', 'target', 'objects.yaml'].map((name) => join(cli.folder, name)) as [
    string,
    string,
    string,
  ];
});
afterEach(() => cli[Symbol.asyncDispose]());

const on = (data: string, ...words: string[]) => runCli(words, { SLUICE_DATA: data, SLUICE_USER: 'anna' });

async function write(text: string): Promise<string> {
  await writeFile(file, text);
  return file;
}

async function fill(): Promise<void> {
  const { code, stderr } = await on(source, 'import', await write(OBJECTS));
  expect([code, stderr]).toEqual([0, '7 created\n']);
}

const kindsIn = (text: string) =>
  loadAll(text).map((each) => {
    const { kind, metadata } = each as { kind: string; metadata: { name: string } };
    return `${kind} ${metadata.name}`;
  });

describe('export', () => {
  test('has all objects in the order in which they can be created, the same each time, without what servers set', async () => {
    await fill();
    const first = await on(source, 'export');
    expect(first.code).toBe(0);
    expect(kindsIn(first.stdout)).toEqual([
      ...['Namespace team', 'ConfigMap owner', 'ClusterRole reader', 'PackagePolicy reviewed', 'NetworkInstance vpc'],
    ]);
    expect(first.stdout).not.toMatch(/uid|resourceVersion|creationTimestamp|managedFields|generation|status/);
    expect((await on(source, 'export')).stdout).toBe(first.stdout);
    expect(kindsIn((await on(source, 'export', '-n', 'team')).stdout)).toEqual([
      ...['Namespace team', 'ConfigMap owner', 'PackagePolicy reviewed'],
    ]);
  });

  test('has Secrets on request only, in a file for the owner only, and never tokens of the server', async () => {
    await fill();
    const without = await on(source, 'export');
    expect(without.stdout).not.toContain('hunter2');
    expect(without.stderr).toContain('left out 1 Secrets, which --include-secrets exports: Secret team/apps-auth');
    expect(without.stderr).toContain('only the server that issued them accepts: Secret team/issued');
    expect(await on(source, 'export', '--include-secrets')).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('name a file'),
    });
    const secrets = join(cli.folder, 'secrets.yaml');
    expect((await on(source, 'export', secrets, '--include-secrets')).code).toBe(0);
    expect((await stat(secrets)).mode & 0o777).toBe(0o600);
    const text = await readFile(secrets, 'utf8');
    expect(text).toContain(Buffer.from('hunter2').toString('base64'));
    expect(text).not.toContain(Buffer.from('t0ken').toString('base64'));
    const again = await on(source, 'export', secrets);
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('--force') });
    expect(await readFile(secrets, 'utf8')).toBe(text);
    expect((await on(source, 'export', secrets, '--force')).code).toBe(0);
    expect(await readFile(secrets, 'utf8')).not.toContain('apps-auth');
  });

  test('has no part of a trust ledger, and import refuses one', async () => {
    const part = (name: string, labels: string) =>
      `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}, labels: {${labels}}}\n---\n`;
    const text = part('trust-key-1', 'sluice.dev/trust-ledger: trust') + part('other', 'a: b');
    const { code, stdout, stderr } = await on(source, 'import', await write(text));
    expect([code, stdout]).toEqual([1, 'ConfigMap default/other created\n']);
    expect(stderr).toContain('ConfigMap default/trust-key-1: it belongs to a trust ledger');
    const folder = dataFolder(source);
    const session = await Session.open({ folder, actor: { name: 'anna' }, write: true });
    await applyConfig(session, await readConfig([file]));
    await session.close();
    const exported = await on(source, 'export');
    expect(kindsIn(exported.stdout)).toEqual(['ConfigMap other']);
    expect(exported.stderr).toContain('left out 1 objects of the trust ledger, which is about one server: ');
  });

  test('reports repositories whose content stays in the data folder', async () => {
    await on(source, 'repo', 'reg', 'sluice:///apps.git', '--create-branch');
    const { stdout, stderr } = await on(source, 'export');
    expect(kindsIn(stdout)).toEqual(['Repository apps']);
    expect(stderr).toContain('exported without their content, which is in the data folder: Repository default/apps');
  });
});

describe('import', () => {
  test('creates what was exported, and changes nothing the second time', async () => {
    await fill();
    const moved = join(cli.folder, 'moved.yaml');
    await on(source, 'export', moved, '--include-secrets');
    const dry = await on(target, 'import', moved, '--dry-run');
    // A dry run needs a data folder, and makes none.
    expect(dry).toMatchObject({ code: 1, stderr: expect.stringContaining('there is no data folder') });
    const first = await on(target, 'import', moved);
    expect(first).toMatchObject({ code: 0, stderr: '6 created\n' });
    expect(first.stdout.split('\n')[0]).toBe('Namespace team created');
    expect(await on(target, 'import', moved)).toMatchObject({ code: 0, stderr: '6 unchanged\n' });
    const back = join(cli.folder, 'back.yaml');
    await on(target, 'export', back, '--include-secrets');
    expect(await readFile(back, 'utf8')).toBe(await readFile(moved, 'utf8'));
  });

  test('leaves an object that differs alone, unless it is forced; a dry run reports the same and changes nothing', async () => {
    await fill();
    const other = await write(
      OBJECTS.replace('hunter2', 'other').replace('{a: b}', '{a: c}').replace('team: shop', 'team: db'),
    );
    const before = (await on(source, 'export')).stdout;
    for (const words of [[], ['--dry-run']]) {
      const { code, stdout, stderr } = await on(source, 'import', other, ...words);
      expect([code, stdout.match(/unchanged/g)?.length]).toEqual([1, 4]);
      expect(stderr).toContain('Secret team/apps-auth differs and stays as it is (data.password)');
      expect(stderr).toContain('ConfigMap team/owner differs and stays as it is (data.a)');
      expect(stderr).toContain('(metadata.labels[team])');
      expect(stderr).not.toMatch(/hunter2|b3RoZXI/);
    }
    expect((await on(source, 'import', other, '--force', '--dry-run')).stdout).toContain('overwritten (dry run)');
    expect((await on(source, 'export')).stdout).toBe(before);
    const forced = await on(source, 'import', other, '--force');
    expect(forced).toMatchObject({ code: 0, stderr: '4 unchanged, 3 overwritten\n' });
    expect((await on(source, 'export')).stdout).toContain('a: c');
    expect((await on(source, 'import', other)).stderr).toBe('7 unchanged\n');
  });

  test('keeps labels that others added', async () => {
    await fill();
    await on(source, 'import', await write(OBJECTS.replace('team: shop', 'team: shop, extra: e')), '--force');
    expect((await on(source, 'import', await write(OBJECTS))).stderr).toBe('7 unchanged\n');
    expect((await on(source, 'export')).stdout).toContain('extra: e');
  });

  test('gives owners the uid that they have here, and reports those that are not there', async () => {
    const owned = (name: string, owner: string) => `---
apiVersion: v1
kind: ConfigMap
metadata:
  name: ${name}
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: ${owner}, uid: of-another-server}]
`;
    const text = `${owned('a', 'y')}${owned('y', 'z')}${owned('b', 'gone')}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: z}\n`;
    const { code, stderr } = await on(source, 'import', await write(text));
    expect([code, stderr]).toEqual([
      0,
      'ConfigMap default/b: left out its owner ConfigMap gone, which is not there\n4 created\n',
    ]);
    const exported = (await on(source, 'export')).stdout;
    expect(exported).toMatch(/name: a\n.*\n {2}ownerReferences:\n/);
    expect(exported).not.toContain('of-another-server');
    expect(exported.match(/ownerReferences/g)).toHaveLength(2);
    expect((await on(source, 'import', file)).stderr).toContain('4 unchanged\n');
  });

  test('refuses a file with an error as a whole, with file, line and field', async () => {
    const flawed = OBJECTS.replace('requiredGates', 'requiredGate').replace('prefix: 10.0.0.0/16', 'prefix: ten');
    const { code, stderr } = await on(source, 'import', await write(flawed));
    expect(code).toBe(2);
    expect(stderr).toContain(`${file}:8:`);
    expect(stderr).toContain('spec.requiredGate: unknown field');
    expect(stderr).toContain('spec.prefixes[0].prefix: ');
    expect((await on(source, 'export')).stdout).not.toContain('team');
    expect(await on(source, 'import', join(cli.folder, 'none.yaml'))).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('cannot read'),
    });
    await writeFile(file, 'a'.repeat(MAX_TRANSFER_CHARACTERS + 1));
    expect(await on(source, 'import', file)).toMatchObject({ code: 2, stderr: expect.stringContaining('at most') });
    const event = 'apiVersion: v1\nkind: Event\nmetadata: {name: e}\n';
    expect((await on(source, 'import', await write(event))).stderr).toContain('Event (v1) is not known');
  });

  test('imports one namespace with -n, and continues after an object that is refused', async () => {
    await write(OBJECTS);
    const part = await on(source, 'import', file, '-n', 'team');
    expect(part).toMatchObject({ code: 0, stderr: '5 created\n' });
    const sealed = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: s}\nimmutable: true\ndata: {a: b}\n';
    await on(source, 'import', await write(sealed));
    const text = `${sealed.replace('a: b', 'a: c')}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: t}\n`;
    const { code, stdout, stderr } = await on(source, 'import', await write(text), '--force');
    expect([code, stdout]).toEqual([1, 'ConfigMap default/t created\n']);
    expect(stderr).toContain(`${file}:1: ConfigMap default/s: `);
    expect(stderr).toContain('1 failed, 1 created\n');
  });
});
