import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TLSSocket } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { issueCertificate } from '../../src/server/certificates/issue-certificate.ts';
import { KubeApi } from '../support/api/kube-api.ts';
import { skipFor } from '../support/skip.ts';
import { ControlPlane } from './support/control-plane.ts';
import { type ClusterPrograms, clusterPrograms } from './support/programs.ts';

const missing = inject('serverMissing');
const starter = fileURLToPath(new URL('support/start-and-wait.ts', import.meta.url));

describe('the control plane', skipFor(missing !== '' && missing), () => {
  let programs: ClusterPrograms;
  let api: KubeApi;
  beforeAll(async () => {
    const built = await clusterPrograms(() => undefined);
    if ('missing' in built) throw new Error(built.missing);
    programs = built;
    api = await KubeApi.of(inject('kubeconfig'));
  });
  afterAll(() => api?.close());

  test('is that of Kubernetes', async () => {
    const { body } = await api.get<{ readonly gitVersion: string }>('/version');
    expect(body.gitVersion).toBe('v1.36.3');
  });

  test('runs workloads on nodes that are played', async () => {
    const name = 'played';
    const node = { metadata: { name }, status: { capacity: { pods: '100' }, allocatable: { pods: '100' } } };
    expect((await api.post('/api/v1/nodes', node)).status).toBe(201);
    const labels = { app: name };
    const container = { name, image: 'example.com/web:1' };
    const tolerations = [{ operator: 'Exists' }];
    const spec = {
      replicas: 2,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { nodeName: name, tolerations, containers: [container] } },
    };
    const path = '/apis/apps/v1/namespaces/default/deployments';
    expect((await api.post(path, { metadata: { name }, spec })).status).toBe(201);
    await expect
      .poll(async () => (await api.get(`${path}/${name}`)).body.status)
      .toMatchObject({ availableReplicas: 2 });
    await api.delete(`${path}/${name}`, { propagationPolicy: 'Foreground' });
    await expect.poll(async () => (await api.get(`${path}/${name}`)).status).toBe(404);
    await api.delete(`/api/v1/nodes/${name}`);
  });

  describe('of a test', () => {
    let plane: ControlPlane;
    beforeAll(async () => {
      plane = await ControlPlane.start({ programs });
    });
    afterAll(() => plane?.stop());

    test('is another one than the shared one', async () => {
      await using other = await connect(plane.kubeconfig);
      const [mine, shared] = [
        await other.api.get('/api/v1/namespaces/default'),
        await api.get('/api/v1/namespaces/default'),
      ];
      expect(mine.body.metadata.uid).not.toBe(shared.body.metadata.uid);
    });

    test('lets a user do what RBAC grants, and nothing else', async () => {
      await using admin = await connect(plane.kubeconfig);
      await using user = await connect(await plane.userKubeconfig('anna', ['readers']));
      const path = '/api/v1/namespaces/default/configmaps';
      expect((await user.api.get(path)).status).toBe(403);
      const metadata = { name: 'readers' };
      const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['list'] }];
      const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'readers' };
      const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'readers' }];
      const rbac = '/apis/rbac.authorization.k8s.io/v1';
      expect((await admin.api.post(`${rbac}/clusterroles`, { metadata, rules })).status).toBe(201);
      expect((await admin.api.post(`${rbac}/clusterrolebindings`, { metadata, roleRef, subjects })).status).toBe(201);
      await expect.poll(async () => (await user.api.get(path)).status).toBe(200);
      expect((await user.api.post(path, { metadata: { name: 'a' } })).status).toBe(403);
    });

    test('vouches to an extension server for the user of a request', async () => {
      await using admin = await connect(plane.kubeconfig);
      await using extension = await startExtension('v1.extension.example.com');
      const service = { type: 'ExternalName', externalName: 'localhost', ports: [{ port: extension.port }] };
      const services = '/api/v1/namespaces/default/services';
      expect((await admin.api.post(services, { metadata: { name: 'extension' }, spec: service })).status).toBe(201);
      const spec = {
        ...{ group: 'extension.example.com', version: 'v1', groupPriorityMinimum: 100, versionPriority: 100 },
        service: { namespace: 'default', name: 'extension', port: extension.port },
        caBundle: Buffer.from(extension.ca).toString('base64'),
      };
      const apiServices = '/apis/apiregistration.k8s.io/v1/apiservices';
      const created = await admin.api.post(apiServices, { metadata: { name: 'v1.extension.example.com' }, spec });
      expect(created.status, created.text).toBe(201);
      const as = { 'impersonate-user': 'bob', 'impersonate-group': ['system:masters'] };
      const path = '/apis/extension.example.com/v1/things';
      await expect.poll(async () => (await admin.api.get(path, as)).status).toBe(200);
      expect(extension.requests).toContainEqual({ proxy: 'front-proxy-client', user: 'bob', path });
    });

    test('stops its programs and deletes its folder', async () => {
      const other = await ControlPlane.start({ programs, controllerManager: true });
      const { pids, folder } = other;
      expect(pids).toHaveLength(3);
      await other.stop();
      expect(pids.filter(isAlive)).toEqual([]);
      expect(existsSync(folder)).toBe(false);
    });
  });

  test('that does not start names the program, ends the others, and keeps the logs', async () => {
    const failure = await ControlPlane.start({ programs, apiServerFlags: ['--no-such-flag'] }).then(
      () => undefined,
      (error: Error) => error,
    );
    expect(failure?.message).toContain('kube-apiserver ended with 1:');
    expect(failure?.message).toContain('unknown flag: --no-such-flag');
    const logs = /logs: (.*)$/.exec(failure?.message ?? '')?.[1] ?? '';
    expect(await readdir(logs)).toEqual(['etcd.log', 'kube-apiserver.log']);
    await rm(join(logs, '..'), { recursive: true });
  });

  test.each(['SIGKILL', 'SIGINT'] as const)('ends with the process that started it: %s', async (signal) => {
    const child = spawn(process.execPath, [starter], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = await once(createInterface(child.stdout), 'line');
    const { pids, folder } = JSON.parse(String(line)) as { readonly pids: readonly number[]; readonly folder: string };
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    expect(pids.filter(isAlive)).toHaveLength(2);
    child.kill(signal);
    await expect.poll(() => pids.filter(isAlive)).toEqual([]);
    // A process that is killed deletes nothing.
    if (signal === 'SIGINT') await expect.poll(() => existsSync(folder)).toBe(false);
  });
});

async function connect(kubeconfig: string): Promise<AsyncDisposable & { readonly api: KubeApi }> {
  const api = await KubeApi.of(kubeconfig);
  return { api, [Symbol.asyncDispose]: async () => api.close() };
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

interface ProxiedRequest {
  readonly proxy: string | undefined;
  readonly user: string | string[] | undefined;
  readonly path: string | undefined;
}

/** An extension server that records who proves to be the front proxy, and for which user. */
async function startExtension(name: string) {
  const valid = { notBefore: Date.now() - 60_000, notAfter: Date.now() + 3_600_000 };
  const ca = await issueCertificate({ ...valid, commonName: name, usage: 'authority' });
  const names = ['extension.default.svc'];
  const own = await issueCertificate({ ...valid, commonName: name, usage: 'server', names }, ca);
  const requests: ProxiedRequest[] = [];
  const options = { key: own.key, cert: own.certificate, requestCert: true, rejectUnauthorized: false };
  const server = createServer(options, (request, response) => {
    const { subject } = (request.socket as TLSSocket).getPeerCertificate();
    requests.push({ proxy: String(subject?.CN), user: request.headers['x-remote-user'], path: request.url });
    response.setHeader('content-type', 'application/json').end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    ca: ca.certificate,
    requests,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
