import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { eventually } from '../support/api/eventually.ts';
import type { KubeApi } from '../support/api/kube-api.ts';
import { temporaryFolder } from '../support/git/git-cli.ts';
import { type GitServer, startGitServer } from '../support/git/git-server.ts';
import { bareWithCommit } from '../support/git/write-objects.ts';
import { skipFor } from '../support/skip.ts';
import { ControlPlane } from './support/control-plane.ts';
import { created } from './support/extension-server.ts';
import { installDefinitions } from './support/install-definitions.ts';
import { clusterPrograms } from './support/programs.ts';
import { Installation, type Replica } from './support/sluice-serve.ts';

const missing = inject('serverMissing');
const REVISIONS = '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions';
const ALL_REVISIONS = '/apis/porch.kpt.dev/v1alpha1/packagerevisions';
const REPOSITORIES = '/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/repositories';
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
/** The garbage collector looks for new kinds every 30 s. */
const COLLECTION = { timeout: 100_000, interval: 200 };
/** Of another server. */
const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0dxV5wWw5mJ5kM0b7hY8e0T5U1d3m7l2w5s7yQm8fK other';

const folder = temporaryFolder();
let plane: ControlPlane;
/** Hosts repository `apps`, and fails in the tests. */
let host: GitServer;
/** Hosts repository `live`. */
let liveHost: GitServer;
let installation: Installation;
let admin: KubeApi;
let count = 0;

function draft(repository: string, packageName: string) {
  return {
    ...{ apiVersion: 'porch.kpt.dev/v1alpha1', kind: 'PackageRevision', metadata: { namespace: 'default' } },
    spec: {
      ...{ packageName, workspaceName: 'v1', repository, lifecycle: 'Draft' },
      tasks: [{ type: 'init', init: { description: packageName } }],
    },
  };
}

async function register(name: string, server: GitServer): Promise<void> {
  await created(
    admin.post(REPOSITORIES, {
      ...{ apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'Repository', metadata: { name } },
      spec: { type: 'git', git: { repo: `${server.url}/${name}.git`, branch: 'main' } },
    }),
  );
  await ready(name, 'True');
}

async function ready(name: string, status: 'True' | 'False'): Promise<void> {
  await eventually(
    () => admin.get(`${REPOSITORIES}/${name}`),
    ({ body }) => JSON.stringify(body.status ?? {}).includes(`"status":"${status}","type":"Ready"`),
  );
}

/** Makes a package revision, and a ConfigMap that it owns. */
async function owned(repository: string): Promise<string> {
  count += 1;
  const { body } = await eventually(
    () => admin.post(REVISIONS, draft(repository, `p${count}`)),
    ({ status }) => status === 201,
  );
  const { name, uid } = body.metadata;
  const ownerReferences = [{ apiVersion: 'porch.kpt.dev/v1alpha1', kind: 'PackageRevision', name, uid }];
  await created(admin.post(CONFIG_MAPS, { metadata: { name, ownerReferences } }));
  return String(name);
}

async function isThere(configMap: string): Promise<boolean> {
  return (await admin.get(`${CONFIG_MAPS}/${configMap}`)).status === 200;
}

/** A package revision with a ConfigMap that it owns, which the garbage collector knows. */
async function known(): Promise<string> {
  const name = await owned('live');
  // Its events come after those of the first one.
  await collected(await owned('live'));
  return name;
}

/**
 * Deletes a package revision and resolves when what it owns is deleted: if the garbage collector knew it, then by an event, so that its
 * informer is up to date.
 */
async function collected(name: string): Promise<void> {
  await eventually(
    () => admin.delete(`${REVISIONS}/${name}`),
    ({ status }) => status === 200,
  );
  await expect.poll(() => isThere(name), COLLECTION).toBe(false);
}

async function leader(): Promise<Replica> {
  return eventually(
    async () => {
      for (const replica of installation.replicas) if (await replica.isLeading()) return replica;
      return undefined;
    },
    (found) => found !== undefined,
  ) as Promise<Replica>;
}

/** The package revisions of `apps` that a list has, once it succeeds. */
async function listed(path = REVISIONS): Promise<readonly string[]> {
  const { body } = await eventually(
    () => admin.get<{ readonly items: readonly { readonly metadata: { readonly name: string } }[] }>(path),
    ({ status }) => status === 200,
  );
  return body.items.map(({ metadata }) => metadata.name).filter((name) => name.startsWith('apps.'));
}

function running(): readonly Replica[] {
  return installation.replicas.filter(({ child }) => child.exitCode === null);
}

function patch(change: unknown) {
  return admin.patch(`${REPOSITORIES}/apps`, change);
}

describe('garbage collection of what package revisions own', skipFor(missing !== '' && missing), () => {
  let kept: string;
  beforeAll(async () => {
    const programs = await clusterPrograms(() => undefined);
    if ('missing' in programs) throw new Error(programs.missing);
    plane = await ControlPlane.start({ programs, controllerManager: true });
    await installDefinitions(plane.kubeconfig);
    for (const name of ['apps', 'live']) {
      mkdirSync(join(folder.path, name));
      bareWithCommit(join(folder.path, name, `${name}.git`));
    }
    host = await startGitServer({ root: join(folder.path, 'apps') });
    liveHost = await startGitServer({ root: join(folder.path, 'live') });
    installation = await Installation.create(plane);
    admin = installation.admin;
    for (const name of ['one', 'two']) await installation.start({ cacheDir: join(folder.path, `cache-${name}`) });
    await installation.served();
    await register('apps', host);
    await register('live', liveHost);
    kept = await owned('apps');
  });
  afterAll(async () => {
    await installation?.[Symbol.asyncDispose]();
    await Promise.all([host?.close(), liveHost?.close()]);
    await plane?.stop();
    folder.remove();
  });

  test('it is collected when they are deleted, and not before', async () => {
    await collected(await known());
    expect(await isThere(kept)).toBe(true);
  });

  test('it stays while settings of a repository change, also to wrong ones', async () => {
    const other = await known();
    const { body } = await admin.get(REVISIONS);
    const watch = await admin.watch(`${REVISIONS}?resourceVersion=${body.metadata.resourceVersion}`);
    await patch({ metadata: { annotations: { 'sluice.dev/trusted-keys': KEY } } });
    await ready('apps', 'True');
    await patch({ spec: { git: { secretRef: { name: 'typo' } } } });
    await ready('apps', 'False');
    expect(await listed()).toEqual([kept]);
    await patch({ metadata: { annotations: { 'sluice.dev/trusted-keys': null } }, spec: { git: { secretRef: null } } });
    await ready('apps', 'True');
    await collected(other);
    expect(await isThere(kept)).toBe(true);
    // That one is deleted last.
    const events: string[] = [];
    for (let isOver = false; !isOver; ) {
      const { type, object } = await watch.change();
      const { name } = object.metadata;
      events.push(`${type} ${name}`);
      isOver = type === 'DELETED' && name === other;
    }
    expect(events.filter((event) => / apps\./.test(event) && !event.startsWith('MODIFIED'))).toEqual([]);
    watch[Symbol.dispose]();
  });

  test.each([401, 404])('it stays when a leader ends while the Git host responds with %i', async (status) => {
    for (const replica of running()) await replica.warm();
    const other = await known();
    host.behaviour.refuse = status;
    const before = await leader();
    await before.stop();
    expect(await listed(ALL_REVISIONS)).toEqual([kept]);
    await collected(other);
    expect(await isThere(kept)).toBe(true);
    host.behaviour.refuse = undefined;
    await patch({ metadata: { annotations: { 'sluice.dev/sync-requested-at': `${status}` } } });
    await ready('apps', 'True');
    const cacheDir = join(folder.path, `cache-after-${status}`);
    await installation.start({ cacheDir });
  });

  test('it stays when a process that serves restarts while the Git host is down', async () => {
    for (const replica of running()) await replica.stop();
    const settings = { cacheDir: join(folder.path, 'cache-api') };
    await installation.start({ role: 'controllers' });
    const first = await installation.start({ ...settings, role: 'api' });
    await first.leading();
    const other = await known();
    expect(await listed()).toEqual([kept]);
    host.behaviour.refuse = 503;
    await first.stop();
    const second = await installation.start({ ...settings, role: 'api' });
    await second.leading();
    expect(await listed(ALL_REVISIONS)).toEqual([kept]);
    await collected(other);
    expect(await isThere(kept)).toBe(true);
  });

  test('it stays when a process without what it had read starts: lists fail until the Git host responds', async () => {
    const other = await known();
    for (const replica of running()) await replica.stop();
    host.behaviour.refuse = 503;
    const replica = await installation.start();
    await replica.leading();
    const { status, text } = await eventually(
      () => admin.get(REVISIONS),
      (answer) => answer.text.includes('read before'),
    );
    expect(text).toContain('repository \\"apps\\" in namespace \\"default\\" was read before and cannot be read now');
    expect(status).toBe(503);
    expect((await admin.get('/apis/porch.kpt.dev/v1alpha1/namespaces/other/packagerevisions')).status).toBe(200);
    host.behaviour.refuse = undefined;
    await patch({ metadata: { annotations: { 'sluice.dev/sync-requested-at': 'now' } } });
    expect(await listed()).toEqual([kept]);
    await collected(other);
    expect(await isThere(kept)).toBe(true);
  });
});
