import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildGoProgram, type GoProgram, type GoSource, HELM } from '../../../test/support/go-program.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { packageBuilder } from './build-package.ts';

// Built from source with the modules of test/cluster/tools; skipped where Go or they are missing.
const KUSTOMIZE: GoSource = {
  ...{ module: '../cluster/tools', name: 'kustomize' },
  target: 'sigs.k8s.io/kustomize/kustomize/v5',
};
const LIMITS = { time: 60_000, outputBytes: 1024 * 1024, memoryBytes: 1024 * 1024 * 1024, clock: systemClock };
const MAP = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\n';

let programs: Record<'kustomize' | 'helm', GoProgram>;
let server: Server;
let requests = 0;

beforeAll(async () => {
  programs = { kustomize: await buildGoProgram(KUSTOMIZE), helm: await buildGoProgram(HELM) };
  server = createServer((_request, response) => {
    requests += 1;
    response.end(MAP);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
}, 600_000);
afterAll(() => server.close());

async function render(mode: 'kustomize' | 'helm', files: Record<string, string>) {
  const { path = '' } = programs[mode];
  const build = packageBuilder({ [mode]: { ...LIMITS, program: path } });
  const { manifests, refused } = await build(
    { files: new Map(Object.entries(files).map(([name, text]) => [name, Buffer.from(text)])), package: 'net/web' },
    mode,
  );
  const text = manifests?.files.get('manifests.yaml');
  return { text: text === undefined ? undefined : Buffer.from(text).toString(), refused, manifests };
}

describe('kustomize', () => {
  test('renders an overlay with its base, and refuses what is not in the package', async ({ skip }) => {
    if (programs.kustomize.path === undefined) return skip(programs.kustomize.missing);
    const files = {
      Kptfile: 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: web}\n',
      'kustomization.yaml': 'resources: [base]\nnamePrefix: east-\nnamespace: apps\n',
      'base/kustomization.yaml': 'resources: [cm.yaml]\nconfigMapGenerator: [{name: more, literals: [a=b]}]\n',
      'base/cm.yaml': MAP,
    };
    const first = await render('kustomize', files);
    expect(first.refused).toBeUndefined();
    expect([...(first.manifests?.places.values() ?? [])]).toEqual(
      [expect.stringContaining('ConfigMap apps/east-more-'), expect.stringContaining('ConfigMap apps/east-web')].sort(),
    );
    expect((await render('kustomize', files)).text).toBe(first.text);

    const outside = {
      ...files,
      'kustomization.yaml': 'resources: [base]\npatches: [{path: ../../../../etc/hostname}]\n',
    };
    expect((await render('kustomize', outside)).refused).toMatchObject({ reason: 'RenderFailed' });
    const { port } = server.address() as AddressInfo;
    const remote = { ...files, 'kustomization.yaml': `resources: ["http://127.0.0.1:${port}/cm.yaml"]\n` };
    expect((await render('kustomize', remote)).refused).toMatchObject({ reason: 'RemoteResource' });
    expect(requests).toBe(0);
    const broken = await render('kustomize', { ...files, 'kustomization.yaml': 'nosuchfield: 1\nresources: [base]\n' });
    expect(broken.refused?.message).toMatch(/^kustomize failed: .*nosuchfield/);
    expect(broken.refused?.message).not.toContain('sluice-exec');
  });
});

describe('helm', () => {
  const CHART = {
    'Chart.yaml': 'apiVersion: v2\nname: web\nversion: 1.0.0\n',
    'values.yaml': 'value: one\n',
    'crds/a.yaml':
      'apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.example.com}\nspec: {}\n',
    'templates/cm.yaml': `${MAP.replace('name: web', 'name: {{ .Release.Name }}')}data:\n  value: {{ .Values.value }}\n`,
    'templates/hook.yaml': `${MAP.replace('name: web', 'name: hook\n  annotations: {"helm.sh/hook": pre-install}')}`,
  };

  test('renders a chart with its definitions and values, without hooks', async ({ skip }) => {
    if (programs.helm.path === undefined) return skip(programs.helm.missing);
    const { text, refused, manifests } = await render('helm', CHART);
    expect(refused).toBeUndefined();
    expect(text).toContain('value: one');
    expect([...(manifests?.places.values() ?? [])].map((place) => place.replace(/ at .*/, '')).sort()).toEqual([
      'ConfigMap web',
      'CustomResourceDefinition as.example.com',
    ]);
  });

  test('a dependency that is not in the package, and random values, are refused', async ({ skip }) => {
    if (programs.helm.path === undefined) return skip(programs.helm.missing);
    const { port } = server.address() as AddressInfo;
    const dependency = `dependencies: [{name: db, version: 1.0.0, repository: "http://127.0.0.1:${port}"}]\n`;
    const missing = await render('helm', { ...CHART, 'Chart.yaml': CHART['Chart.yaml'] + dependency });
    expect(missing.refused?.message).toMatch(/^helm failed: .*missing in charts/);
    expect(requests).toBe(0);
    const random = { ...CHART, 'templates/r.yaml': `${MAP.replace('web', 'r')}data: {a: "{{ randAlphaNum 16 }}"}\n` };
    expect((await render('helm', random)).refused?.message).toContain('other manifests each time');
  });
});
