import { execFile, execFileSync, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { skipFor } from '../../test/support/skip.ts';
import { systemClock } from '../foundation/time/clock.ts';
import { configMapKind } from '../resource/kinds/core/config-map.ts';
import { namespaceKind } from '../resource/kinds/core/namespace.ts';
import type { Kind } from '../resource/schema/kind.ts';
import { widgetKind } from '../resource/schema/testing.ts';
import { openPki, serverNames } from './certificates/open-pki.ts';
import { documentPaths, servedKinds } from './document-paths.ts';
import { DocumentCache } from './documents/document-cache.ts';
import { startTestServer, type TestServer } from './testing.ts';

let folder: string;
let api: TestServer;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-kubectl-'));
  const names = serverNames('127.0.0.1', 'localhost');
  const pki = await openPki({ folder: join(folder, 'pki'), names, clock: systemClock, onNote: () => undefined });
  const documents = new DocumentCache({
    served: () => ({ kinds: servedKinds(api.registry), reviews: [] }),
    generation: () => 1,
    version: '0.0.0',
    platform: 'linux/amd64',
  });
  const kinds = [widgetKind, namespaceKind, configMapKind] as unknown as Kind[];
  const tls = { key: pki.server.key, cert: pki.server.certificate, clientCa: pki.authority };
  api = await startTestServer({ paths: [documentPaths(documents)] }, kinds, tls);
  const namespace = namespaceKind.complete({ metadata: { name: 'default' }, spec: undefined });
  await api.registry.storage(namespaceKind).create({ actor: { name: 'test' }, face: 'api' }, namespace);
  const authority = Buffer.from(pki.authority).toString('base64');
  const config = {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'admin' },
    clusters: [{ name: 'test', cluster: { server: api.listener.url, 'certificate-authority-data': authority } }],
    users: ['admin', 'anna'].map((name) => ({ name, user: { token: name } })),
    contexts: ['admin', 'anna'].map((name) => ({ name, context: { cluster: 'test', user: name } })),
  };
  await writeFile(join(folder, 'kubeconfig'), JSON.stringify(config));
});
afterAll(async () => {
  await api.stop();
  await rm(folder, { recursive: true });
  expect(api.errors).toEqual([]);
});

/** Which kubectl to try. */
const KUBECTL = process.env.KUBECTL ?? 'kubectl';

const environment = () => ({ ...process.env, KUBECONFIG: join(folder, 'kubeconfig'), HOME: folder });

/** Runs kubectl and returns what a user sees: both streams, and the exit code if it is not 0. */
function kubectl(command: string, input = ''): Promise<string> {
  return new Promise((resolve) => {
    const options = { env: environment(), timeout: 120_000 };
    const child = execFile(KUBECTL, command.split(' '), options, (error, out, err) => {
      resolve(`${out}${err}${error === null ? '' : `exit ${error.code}`}`.trim());
    });
    child.stdin?.end(input);
  });
}

function manifest(name: string, spec: object, metadata: object = {}): string {
  return JSON.stringify({ apiVersion: 'test.sluice.dev/v1', kind: 'Widget', metadata: { name, ...metadata }, spec });
}

function isInstalled(): boolean {
  try {
    execFileSync(KUBECTL, ['version', '--client'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

describe('kubectl', skipFor(!isInstalled() && 'kubectl is not installed'), () => {
  test('finds the kinds and explains them', async () => {
    expect(await kubectl('api-resources --api-group=test.sluice.dev --no-headers')).toMatch(
      /^widgets +wd +test.sluice.dev\/v1 +true +Widget$/,
    );
    expect(await kubectl('explain widget.spec.size')).toContain('FIELD: size <integer>');
  });

  test('creates, shows, edits, patches and deletes', async () => {
    expect(await kubectl('create -f -', manifest('a', { size: 1 }))).toBe('widget.test.sluice.dev/a created');
    expect(await kubectl('get widgets')).toMatch(/^NAME +AGE\na +\d+s$/);
    expect(await kubectl('get wd a -o jsonpath={.spec.size}')).toBe('1');
    expect(await kubectl('get wd a -o yaml')).toContain('kind: Widget\n');
    expect(await kubectl('label wd a tier=x')).toBe('widget.test.sluice.dev/a labeled');
    expect(await kubectl('get wd -l tier=x -o name')).toBe('widget.test.sluice.dev/a');
    expect(await kubectl('get wd --field-selector spec.size=2')).toBe('No resources found in default namespace.');
    expect(await kubectl('patch wd a --type json -p [{"op":"replace","path":"/spec/size","value":8}]')).toMatch(
      /patched$/,
    );
    expect(await kubectl('replace -f -', manifest('a', { size: 9 }))).toBe('widget.test.sluice.dev/a replaced');
    expect(await kubectl('delete wd a')).toBe('widget.test.sluice.dev "a" deleted');
    expect(await kubectl('get wd a')).toBe(
      'Error from server (NotFound): widgets.test.sluice.dev "a" not found\nexit 1',
    );
  });

  test('applies client-side, and server-side with conflicts reported', async () => {
    expect(await kubectl('apply -f -', manifest('b', { size: 1 }))).toMatch(/created$/);
    expect(await kubectl('apply -f -', manifest('b', { size: 1 }))).toMatch(/unchanged$/);
    expect(await kubectl('apply -f -', manifest('b', { size: 2 }))).toMatch(/configured$/);
    const conflict = await kubectl('apply --server-side -f -', manifest('b', { size: 3 }));
    expect(conflict).toContain('Apply failed with 1 conflict: conflict with "kubectl-client-side-apply"');
    expect(await kubectl('apply --server-side --force-conflicts -f -', manifest('b', { size: 3 }))).toMatch(/applied$/);
    expect(await kubectl('apply --server-side -f -', manifest('b', { size: 4 }))).toMatch(/applied$/);
    const configMap = (data: object) =>
      JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c' }, data });
    expect(await kubectl('apply -f -', configMap({ a: 'b', c: 'd' }))).toBe('configmap/c created');
    expect(await kubectl('apply -f -', configMap({ a: 'x' }))).toBe('configmap/c configured');
    expect(await kubectl('get cm c -o jsonpath={.data}')).toBe('{"a":"x"}');
    await kubectl('delete wd b');
  });

  test('reports the errors of a manifest', async () => {
    expect(await kubectl('create -f -', manifest('w', { size: 1, colour: 'red' }))).toContain(
      'unknown field "spec.colour"',
    );
    expect(await kubectl('create --validate=warn -f -', manifest('w', { colour: 'red' }))).toMatch(
      /^widget.test.sluice.dev\/w created\nWarning: unknown field "spec.colour"; did you mean color\?$/,
    );
    expect(await kubectl('create --validate=ignore -f -', manifest('v', { size: 'x', color: 'pink' }))).toBe(
      'The Widget "v" is invalid: \n* spec.size: Invalid value: "x": expected number\n' +
        '* spec.color: Unsupported value: "pink": supported values: "red", "green", "blue"\nexit 1',
    );
    expect(await kubectl('create -n nowhere -f -', manifest('v', {}))).toContain('namespaces "nowhere" not found');
    expect(await kubectl('create --dry-run=server -f -', manifest('v', {}))).toMatch(/created \(server dry run\)$/);
    expect(await kubectl('get wd v')).toContain('NotFound');
    expect(await kubectl('--context anna get wd')).toContain('User "anna" cannot list resource "widgets"');
    await kubectl('delete wd --all');
  });

  test('watches, waits, and waits for a deletion', async () => {
    const watch = spawn(KUBECTL, ['get', 'wd', '-w', '--no-headers'], { env: environment() });
    let seen = '';
    watch.stdout.setEncoding('utf8').on('data', (text: string) => {
      seen += text;
    });
    try {
      await expect.poll(() => api.server.load.watches).toBe(1);
      await kubectl('create -f -', manifest('z', {}, { finalizers: ['example.org/hold'] }));
      await expect.poll(() => seen).toMatch(/^z +\S+\n$/);
      const ready = kubectl('wait wd/z --for=jsonpath={.status.ready}=true --timeout=10s');
      await kubectl('patch wd z --subresource=status --type merge -p {"status":{"ready":true}}');
      expect(await ready).toBe('widget.test.sluice.dev/z condition met');
      const deleted = kubectl('delete wd z');
      await expect.poll(() => kubectl('get wd z -o jsonpath={.metadata.deletionTimestamp}')).not.toBe('');
      await kubectl('patch wd z --type merge -p {"metadata":{"finalizers":null}}');
      expect(await deleted).toBe('widget.test.sluice.dev "z" deleted');
    } finally {
      watch.kill();
    }
  });
});
