import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, inject, test } from 'vitest';
import { runCli } from '../../src/cli/testing.ts';
import { made, pathOf, usePlace } from '../conformance/support/place.ts';

const place = usePlace();

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-transfer-'));
  return () => rm(folder, { recursive: true });
});

const post = async (kind: string, object: object) => made(await place.api.post(place.path(kind), object));

test('objects move from a cluster to a data folder and back, without those of the cluster', async () => {
  const { namespace } = place;
  const metadata = (name: string) => ({ name, namespace });
  await post('config.porch.kpt.dev/v1alpha1/repositories', {
    ...{ apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'Repository', metadata: metadata('apps') },
    spec: { type: 'git', git: { repo: 'https://git.example.com/apps.git', secretRef: { name: 'apps-auth' } } },
  });
  await post('sluice.dev/v1alpha1/packagepolicies', {
    ...{ apiVersion: 'sluice.dev/v1alpha1', kind: 'PackagePolicy', metadata: metadata('reviewed') },
    spec: { selector: { repositories: ['apps'] }, requiredGates: [{ conditionType: 'example.com/Reviewed' }] },
  });
  await post('secrets', {
    ...{ apiVersion: 'v1', kind: 'Secret', metadata: metadata('apps-auth') },
    stringData: { username: 'u', password: 'p' },
  });
  await post('services', {
    ...{ apiVersion: 'v1', kind: 'Service', metadata: metadata('web') },
    spec: { selector: { app: 'web' }, ports: [{ port: 80 }] },
  });

  const cluster = (...words: string[]) => runCli([...words, '--kubeconfig', inject('kubeconfig'), '-n', namespace]);
  const file = join(folder, 'cluster.yaml');
  const exported = await cluster('export', file, '--include-secrets');
  expect(exported).toMatchObject({ code: 0, stderr: expect.stringContaining('5 objects exported') });
  // What a Service has besides the fields that Sluice knows.
  expect(exported.stderr).toContain(`left out unknown fields of Service ${namespace}/web: spec.clusterIPs`);
  expect((await stat(file)).mode & 0o777).toBe(0o600);

  const data = ['--data', join(folder, 'data')];
  expect(await runCli(['import', file, ...data])).toMatchObject({ code: 0, stderr: '5 created\n' });
  const back = join(folder, 'back.yaml');
  expect(await runCli(['export', back, '--include-secrets', ...data])).toMatchObject({ code: 0 });
  expect(await readFile(back, 'utf8')).toBe(await readFile(file, 'utf8'));
  expect(await cluster('import', back)).toMatchObject({ code: 0, stderr: '5 unchanged\n' });

  made(await place.api.delete(place.path('services', 'web')));
  made(await place.api.delete(place.path('secrets', 'apps-auth')));
  expect(await cluster('import', back, '--dry-run')).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/^3 unch/),
  });
  const restored = await cluster('import', back);
  expect(restored).toMatchObject({ code: 0, stderr: expect.stringContaining('2 created') });
  made(await place.api.get(place.path('services', 'web')));
});

test('of a whole cluster only namespaces with objects of Sluice are exported', async () => {
  const { namespace } = place;
  await post('sluice.dev/v1alpha1/packagepolicies', {
    ...{ apiVersion: 'sluice.dev/v1alpha1', kind: 'PackagePolicy', metadata: { name: 'lax', namespace } },
    spec: { selector: { repositories: ['apps'] } },
  });
  const other = `${namespace}-other`;
  made(await place.api.post(pathOf('namespaces'), { apiVersion: 'v1', kind: 'Namespace', metadata: { name: other } }));
  const { code, stdout } = await runCli(['export', '--kubeconfig', inject('kubeconfig')]);
  made(await place.api.delete(`${pathOf('namespaces')}/${other}`));
  expect(code).toBe(0);
  expect(stdout).toContain(`kind: Namespace\nmetadata:\n  name: ${namespace}\n`);
  expect(stdout).not.toMatch(
    new RegExp(`name: ${other}\\n|name: kube-system|kind: CustomResourceDefinition|kind: ClusterRole\\b`),
  );
});
