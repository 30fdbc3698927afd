import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { kustomizationKind } from '../../delivery/status/sources/engine-kinds.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { HostRules } from '../../git/network/host-rules.ts';
import { sendJson, sendStatus, WireServer } from '../../kubernetes/testing.ts';
import type { Client } from '../../resource/client/client.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import { secretKind } from '../../resource/kinds/core/secret.ts';
import { type DeliveryTarget, deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import type { Stored } from '../../resource/object/object.ts';
import { MemoryStorage } from '../../resource/storage/memory/memory-storage.ts';
import { Registry } from '../../resource/storage/registry.ts';
import { EventLog } from '../../resource/watch/event-log.ts';
import { deploymentSources } from './deployment-sources.ts';

const [C1, C2] = ['1', '2'].map((digit) => digit.repeat(40)) as [string, string];
const signal = new AbortController().signal;
const ALLOWED = { hosts: new HostRules(['127.0.0.1']) };
const TOKEN = 'token-of-the-cluster';

let wire: WireServer;
let client: Client;
beforeEach(async () => {
  wire = await new WireServer().start();
  const registry = new Registry();
  const log = new EventLog({ clock: systemClock });
  for (const kind of [secretKind, deliveryTargetKind] as const)
    registry.register(new MemoryStorage(kind as typeof secretKind, { clock: systemClock, log }));
  client = new RegistryClient(registry, { name: 'anna' }, 'controller');
});
afterEach(() => wire.stop());

const server = () => wire.access().server;

async function targetWith(
  engine: object,
  repo = 'https://git.example.com/edge/site.git',
): Promise<Stored<DeliveryTarget>> {
  return client.create(deliveryTargetKind, {
    metadata: { name: 'edge' },
    spec: { selector: {}, git: { repo, directory: 'clusters/edge', secretRef: { name: 'git' } }, engine } as never,
  });
}

async function kubeconfig(change: { cluster?: object; user?: object } = {}): Promise<void> {
  const config = {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'c' },
    clusters: [{ name: 'c', cluster: { server: server(), ...change.cluster } }],
    users: [{ name: 'u', user: { token: TOKEN, ...change.user } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
  };
  await client.create(secretKind, {
    metadata: { name: 'edge' },
    stringData: { value: JSON.stringify(config) },
  } as never);
}

const sources = (network = ALLOWED) => deploymentSources({ client, clock: systemClock, network });
const FLUX = { type: 'Flux', name: 'edge', kubeconfigSecretRef: { name: 'edge' } };
const open = async (engine: object, network = ALLOWED, repo?: string, onChange = () => undefined) =>
  sources(network).open(await targetWith(engine, repo), onChange, signal);
const request = (commits: string[] = []) => ({ commits: async () => commits, signal });

describe('a cluster of a kubeconfig in a Secret', () => {
  test('is read with its token, over a watch, and only the objects that the target names', async () => {
    await kubeconfig();
    const kustomization = (commit: string, resourceVersion: string) => ({
      metadata: {
        name: 'edge',
        namespace: 'flux-system',
        uid: 'u',
        generation: 1,
        resourceVersion,
        creationTimestamp: '2030-01-01T00:00:00Z',
      },
      spec: { path: './clusters/edge', wait: true },
      status: {
        observedGeneration: 1,
        lastAppliedRevision: `main@sha1:${commit}`,
        lastAttemptedRevision: `main@sha1:${commit}`,
        conditions: [{ type: 'Ready', status: 'True' }],
        inventory: { entries: [{ id: 'x'.repeat(1000), v: 'v1' }] },
      },
    });
    wire.handle = ({ query }, response) => {
      if (query.get('watch') === 'true') {
        const { apiVersion, kind } = kustomizationKind;
        response.writeHead(200, { 'content-type': 'application/json' });
        response.write(
          `${JSON.stringify({ type: 'MODIFIED', object: { apiVersion, kind, ...kustomization(C2, '2') } })}\n`,
        );
      } else
        sendJson(response, 200, { kind: 'List', metadata: { resourceVersion: '1' }, items: [kustomization(C1, '1')] });
    };
    const status = await open(FLUX);
    try {
      await status.reports(request());
      await expect.poll(async () => (await status.reports(request())).reports).toMatchObject([{ applied: C2 }]);
      const [first] = wire.received;
      expect(first?.path).toBe('/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations');
      expect(first?.query.get('fieldSelector')).toBe('metadata.name=edge');
      expect(first?.headers.authorization).toBe(`Bearer ${TOKEN}`);
    } finally {
      await status.close();
    }
  });

  test('that refuses is an error with the server and the cause, without the token', async () => {
    await kubeconfig();
    wire.handle = (_request, response) => sendStatus(response, 403, 'Forbidden', 'kustomizations is forbidden');
    const status = await open(FLUX);
    try {
      const error = await status.reports(request()).then(String, String);
      expect(error).toContain(`cannot read the kustomizations of ${server()}`);
      expect(error).toContain('forbidden');
      expect(error).not.toContain(TOKEN);
    } finally {
      await status.close();
    }
  });

  test('that may not read the sources of Flux is an error that begins with the next step', async () => {
    await kubeconfig();
    wire.handle = ({ path, query }, response) => {
      if (path.endsWith('/gitrepositories')) sendStatus(response, 403, 'Forbidden', 'gitrepositories is forbidden');
      else if (query.get('watch') === 'true') response.writeHead(200).flushHeaders();
      else sendJson(response, 200, { kind: 'List', metadata: { resourceVersion: '1' }, items: [] });
    };
    const status = await open({ ...FLUX, name: undefined });
    try {
      await expect(status.reports(request())).rejects.toThrow(
        /^grant list and watch on gitrepositories, or set spec\.engine\.name: cannot read the gitrepositories of /,
      );
    } finally {
      await status.close();
    }
  });

  test.each([
    ['exec', { user: { exec: { command: 'sh' } } }],
    ['auth-provider', { user: { 'auth-provider': { name: 'x' } } }],
    ['tokenFile', { user: { tokenFile: '/etc/passwd' } }],
    ['client-key', { user: { 'client-key': '/etc/passwd' } }],
    ['client-certificate', { user: { 'client-certificate': '/etc/passwd' } }],
    ['certificate-authority', { cluster: { 'certificate-authority': '/etc/passwd' } }],
    ['insecure-skip-tls-verify', { cluster: { 'insecure-skip-tls-verify': true } }],
    ['proxy-url', { cluster: { 'proxy-url': 'http://127.0.0.1:1' } }],
  ])('with %s is refused, before anything is connected to', async (field, change) => {
    await kubeconfig(change);
    const error = await open(FLUX).then(String, String);
    expect(error).toContain(`${field} of `);
    expect(error).toContain('is not permitted');
    expect(error).not.toContain(TOKEN);
    expect(wire.connections).toBe(0);
  });

  describe('whose server sends too much', () => {
    const item = (name: string, more: object = {}) => ({
      metadata: { name, namespace: 'flux-system', uid: 'u', resourceVersion: '1', ...more },
      spec: { path: 'edge' },
      status: { conditions: Array(20).fill({ type: 'Ready', status: 'x'.repeat(1024), message: 'y'.repeat(1024) }) },
    });
    const failure = async (status: { reports(of: ReturnType<typeof request>): Promise<unknown> }) =>
      String(await status.reports(request()).then(String, (error) => error));

    test('by endless pages is not read further', async () => {
      await kubeconfig();
      wire.handle = ({ query }, response) => {
        const page = Number(query.get('continue') ?? 0) + 1;
        const items = Array.from({ length: 60 }, (_, at) => item(`k${page}-${at}`));
        sendJson(response, 200, { metadata: { resourceVersion: '1', continue: String(page) }, items });
      };
      const status = await open({ ...FLUX, name: undefined, selector: {} });
      try {
        expect(await failure(status)).toMatch(/33554432 bytes.*select fewer/);
        const { length } = wire.received;
        expect(length).toBeLessThan(40);
        // It stays so, without another request.
        expect(await failure(status)).toContain('select fewer');
        expect(wire.received).toHaveLength(length);
      } finally {
        await status.close();
      }
    });

    test('keeps no large label, and refuses a large name', async () => {
      const large = { labels: { a: 'x'.repeat(3_000_000), ['k'.repeat(1_000_000)]: '' } };
      const { object } = kustomizationKind.parse(item('edge', large));
      expect(JSON.stringify(object).length).toBeLessThan(60_000);
      await kubeconfig();
      wire.handle = (_request, response) =>
        sendJson(response, 200, { metadata: { resourceVersion: '1' }, items: [item('x'.repeat(1000))] });
      const status = await open(FLUX);
      try {
        expect(await failure(status)).toContain('metadata.name of an object has more than 512 characters');
      } finally {
        await status.close();
      }
    });

    test('by events ends the watch', async () => {
      await kubeconfig();
      let isClosed = false;
      wire.handle = ({ query }, response) => {
        if (query.get('watch') !== 'true')
          return sendJson(response, 200, { metadata: { resourceVersion: '1' }, items: [] });
        response.writeHead(200, { 'content-type': 'application/json' });
        response.on('close', () => {
          isClosed = true;
        });
        const { apiVersion, kind } = kustomizationKind;
        for (let at = 0; at < 900; at += 1) {
          const object = { apiVersion, kind, ...item(`k${at}`) };
          response.write(`${JSON.stringify({ type: 'ADDED', object })}\n`);
        }
      };
      const status = await open({ ...FLUX, name: undefined, selector: {} });
      try {
        await expect.poll(() => failure(status), { timeout: 10_000 }).toMatch(/more than 20000 .* bytes.*select fewer/);
        await expect.poll(() => isClosed).toBe(true);
      } finally {
        await status.close();
      }
    });
  });

  test('at a local address is refused unless the operator permits the host', async () => {
    await kubeconfig();
    await expect(open(FLUX, { hosts: new HostRules() })).rejects.toMatchObject({ code: 'Refused' });
    expect(wire.connections).toBe(0);
  });

  test('that is missing, or has no kubeconfig, is an error with the next step', async () => {
    await expect(open(FLUX)).rejects.toMatchObject({ code: 'NotFound', message: expect.stringContaining('create it') });
  });
});

describe('commit statuses of a Git host', () => {
  const COMMIT_STATUS = { type: 'CommitStatus', context: 'kustomization/*' };
  const secret = () =>
    client.create(secretKind, {
      metadata: { name: 'git' },
      stringData: { username: 'ci', password: 'hunter2' },
    } as never);

  /** Responds for one API as a host does, and with 404 elsewhere. */
  function host(prefix: string, statuses: Readonly<Record<string, readonly object[]>>): void {
    wire.handle = ({ path }, response) => {
      const commit = new RegExp(`^${prefix}/repos/edge/site/commits/([0-9a-f]{40})/status$`).exec(path)?.[1];
      if (commit === undefined) response.writeHead(404, { 'content-type': 'text/html' }).end('<html>not found</html>');
      else sendJson(response, 200, { state: 'pending', sha: commit, statuses: statuses[commit] ?? [] });
    };
  }

  test.each([
    ['Gitea', '/api/v1', 'status'],
    ['GitHub Enterprise', '/api/v3', 'state'],
  ])('%s: the newest commit with a status is the attempt, the newest success is applied', async (_, prefix, field) => {
    await secret();
    host(prefix, {
      [C2]: [
        { context: 'kustomization/edge/1234', [field]: 'failure', description: 'health check failed: upf 2/3' },
        { context: 'ci/build', [field]: 'success' },
      ],
      [C1]: [{ context: 'kustomization/edge/1234', [field]: 'success', description: 'reconciliation succeeded' }],
    });
    const status = await open(COMMIT_STATUS, ALLOWED, `${server()}/edge/site.git`);
    try {
      expect(await status.reports(request(['3'.repeat(40), C2, C1]))).toMatchObject({
        reports: [
          {
            path: 'clusters/edge',
            applied: C1,
            attempt: { commit: C2, outcome: 'Failed', message: expect.stringContaining('upf 2/3') },
            healthy: { status: 'False', reason: 'Degraded' },
          },
        ],
        retryAfterMs: 15_000,
      });
      expect(wire.received[0]?.headers.authorization).toBe(`Basic ${Buffer.from('ci:hunter2').toString('base64')}`);
    } finally {
      await status.close();
    }
  });

  test('contexts of packages make reports about their folders, of older commits too, and do not count for the target', async () => {
    await secret();
    const engine = { ...COMMIT_STATUS, context: '*', packageContext: 'sluice/edge/{package}' };
    // The commit that delivered web is older than those that are read each time.
    const commits = [...Array(30).keys()].map((index) => index.toString(16).padStart(40, '0'));
    const [newest = '', old = ''] = [commits[0], commits[25]];
    const statuses: Record<string, object[]> = {
      [newest]: [
        { context: 'kustomization/edge', status: 'success' },
        { context: 'sluice/edge/apps/upf', status: 'failure', description: '2/3 ready' },
        { context: 'sluice/edge/../../other', status: 'success' },
        { context: 'sluice/edge/', status: 'pending' },
      ],
      [old]: [{ context: 'sluice/edge/web', status: 'success' }],
    };
    host('/api/v1', statuses);
    const status = await open(engine, ALLOWED, `${server()}/edge/site.git`);
    try {
      const read = async () => (await status.reports(request(commits))).reports;
      const first = await read();
      expect(first.map(({ path, healthy }) => [path, healthy.status])).toEqual([
        ['clusters/edge', 'Unknown'],
        ['clusters/edge/apps/upf', 'False'],
        ['clusters/edge/web', 'True'],
      ]);
      expect(first[2]).toMatchObject({ object: 'commit status sluice/edge/web', applied: old });
      // Ten of the newest, and the old one again: its status can become a failure.
      statuses[old] = [{ context: 'sluice/edge/web', status: 'failure' }];
      const before = wire.received.length;
      expect((await read())[2]).toMatchObject({ path: 'clusters/edge/web', attempt: { outcome: 'Failed' } });
      expect(wire.received.length - before).toBe(11);
    } finally {
      await status.close();
    }
  });

  test('all pages of the statuses of a commit count, up to a limit', async () => {
    await secret();
    let pages = 2;
    wire.handle = ({ query }, response) => {
      const page = Number(query.get('page'));
      const context = (index: number) => `kustomization/${page}-${index}`;
      const full = [...Array(50).keys()].map((index) => ({ context: context(index), status: 'success' }));
      const last = [{ context: context(0), status: 'failure' }];
      sendJson(response, 200, { statuses: page <= pages ? full : page === pages + 1 ? last : [] });
    };
    const status = await open(COMMIT_STATUS, ALLOWED, `${server()}/edge/site.git`);
    try {
      expect((await status.reports(request([C1]))).reports[0]?.healthy.status).toBe('False');
      const before = wire.received.length;
      pages = 1000;
      await status.reports(request([C1]));
      expect(wire.received.length - before).toBe(20);
    } finally {
      await status.close();
    }
  });

  test('nonsense, no status and a pending one are never healthy', async () => {
    await secret();
    host('/api/v1', {
      [C1]: [{ context: 'kustomization/edge', status: 'pending' }],
      [C2]: ['nonsense', { context: 7 }] as never,
    });
    const status = await open(COMMIT_STATUS, ALLOWED, `${server()}/edge/site.git`);
    try {
      const [pending] = (await status.reports(request([C2, C1]))).reports;
      expect(pending).toMatchObject({ applied: undefined, attempt: { outcome: 'Syncing' }, isWorking: true });
      const [none] = (await status.reports(request([C2]))).reports;
      expect(none?.problem?.synced).toMatchObject({ status: 'Unknown', reason: 'NotReported' });
    } finally {
      await status.close();
    }
  });

  test('a host that refuses, fails, redirects or sends too much is an error without the password', async () => {
    await secret();
    const status = await open(COMMIT_STATUS, ALLOWED, `${server()}/edge/site.git`);
    try {
      for (const [code, expected] of [
        [401, 'check that the Secret'],
        [403, 'check that the Secret'],
        [302, 'returned 302'],
        [500, 'returned 500'],
      ] as const) {
        wire.handle = (_request, response) =>
          void response.writeHead(code, { location: 'http://127.0.0.1:1/' }).end('hunter2');
        const error = await status.reports(request([C1])).then(String, String);
        expect(error).toContain(expected);
        expect(error).not.toContain('hunter2');
      }
      wire.handle = (_request, response) => void response.writeHead(200).end('x'.repeat(3 * 1024 * 1024));
      await expect(status.reports(request([C1]))).rejects.toMatchObject({ code: 'LimitExceeded' });
    } finally {
      await status.close();
    }
  });

  test('an address without an owner and a repository, and a host that is not permitted, are refused', async () => {
    await expect(open(COMMIT_STATUS, ALLOWED, 'git@git.example.com:edge/site.git')).rejects.toMatchObject({
      code: 'InvalidInput',
    });
    await secret();
    const target = { ...(await client.get(deliveryTargetKind, { name: 'edge' })) };
    const spec = { ...target.spec, git: { ...target.spec.git, repo: `${server()}/edge/site.git` } };
    const status = await sources({ hosts: new HostRules() }).open({ ...target, spec }, () => undefined, signal);
    await expect(status.reports(request([C1]))).rejects.toMatchObject({ code: 'Refused' });
    await status.close();
    expect(wire.connections).toBe(0);
  });
});
