import 'node:tls';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sendJson, sendStatus, WireServer } from '../../kubernetes/testing.ts';
import { runCli } from '../testing.ts';

const FREEZES = '/apis/sluice.dev/v1alpha1/namespaces/';

test('a freeze of all namespaces is made, and shown, in the namespace that the server reports', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-system-'));
  // As a kube-apiserver that passes the packages on to Sluice in the namespace platform.
  const server = new WireServer();
  const stored = new Map<string, object[]>();
  server.handle = ({ method, path, body }, response) => {
    if (path === '/version') return sendJson(response, 200, { gitVersion: 'v1.33.1' });
    if (path === '/apis/porch.kpt.dev/v1alpha1')
      return sendJson(response, 200, {
        resources: [{ name: 'packagerevisions/explain' }],
        'sluice.dev/system-namespace': 'platform',
      });
    if (path.endsWith('/packagerevisions') || path.endsWith('/repositories'))
      return sendJson(response, 200, { metadata: { resourceVersion: '1' }, items: [] });
    const [namespace = '', , name] = path.startsWith(FREEZES) ? path.slice(FREEZES.length).split('/') : [];
    const freezes = stored.get(namespace) ?? [];
    if (namespace === '' || name !== undefined) return sendStatus(response, 404, 'NotFound', `${path} not found`);
    if (method === 'GET') return sendJson(response, 200, { metadata: { resourceVersion: '1' }, items: freezes });
    const given = JSON.parse(body);
    const metadata = { ...given.metadata, uid: 'u', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' };
    stored.set(namespace, [...freezes, { ...given, metadata }]);
    return sendJson(response, 201, { ...given, metadata });
  };
  await server.start();
  try {
    const kubeconfig = join(folder, 'kubeconfig');
    const config = {
      clusters: [{ name: 'c', cluster: { server: server.access().server } }],
      users: [{ name: 'anna', user: { token: 's3cr3t' } }],
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'anna', namespace: 'team' } }],
      'current-context': 'c',
    };
    await writeFile(kubeconfig, JSON.stringify(config));
    const run = (...words: string[]) =>
      runCli([...words, '--kubeconfig', kubeconfig], { HOME: folder, SLUICE_DATA: join(folder, 'data') });
    expect(await run('freeze', '-A', '--reason', 'core repair', '--name', 'core')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^all namespaces are frozen/),
    });
    expect([...stored.keys()]).toEqual(['platform']);
    expect((await run('rpkg', 'get')).stderr).toContain('FROZEN: all namespaces are frozen by Freeze platform/core');
    expect((await run('freeze', 'get')).stdout).toMatch(/^core +all namespaces +in force/m);
  } finally {
    await server.stop();
    await rm(folder, { recursive: true });
  }
});
