import { describe, expect, test } from 'vitest';
import type { KubeList } from '../support/api/kube-api.ts';
import { expectNotModified, failure, made, usePlace } from './support/place.ts';

interface Resource {
  readonly name: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
}

const place = usePlace();
const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

async function groupVersions(): Promise<string[]> {
  const { body } = await place.api.get<{ groups: { versions: { groupVersion: string }[] }[] }>('/apis');
  return body.groups.flatMap((group) => group.versions.map(({ groupVersion }) => groupVersion));
}

async function resourcesOf(path: string): Promise<readonly Resource[]> {
  return made(await place.api.get<{ resources: readonly Resource[] }>(path)).resources;
}

describe('discovery', () => {
  test('the version names itself', async () => {
    const text = expect.stringMatching(/./);
    expect((await place.api.get('/version')).body).toMatchObject({ major: text, minor: text, gitVersion: /^v/ });
  });

  test('the core group has its version and its resources', async () => {
    expect((await place.api.get('/api')).body).toMatchObject({ kind: 'APIVersions', versions: ['v1'] });
    const { body } = await place.api.get('/api/v1');
    expect(body).toMatchObject({ kind: 'APIResourceList', groupVersion: 'v1' });
    expect(body.resources).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          ...{ name: 'configmaps', singularName: 'configmap', namespaced: true, kind: 'ConfigMap', shortNames: ['cm'] },
          verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
        }),
        expect.objectContaining({
          name: 'namespaces',
          singularName: 'namespace',
          namespaced: false,
          shortNames: ['ns'],
        }),
        expect.objectContaining({ name: 'namespaces/status', kind: 'Namespace', verbs: ['get', 'patch', 'update'] }),
        expect.objectContaining({
          name: 'namespaces/finalize',
          kind: 'Namespace',
          verbs: expect.arrayContaining(['update']),
        }),
      ]),
    );
  });

  test('groups name their versions, the preferred one among them', async () => {
    const { body } = await place.api.get('/apis');
    const coordination = { groupVersion: 'coordination.k8s.io/v1', version: 'v1' };
    expect(body).toMatchObject({ kind: 'APIGroupList' });
    expect(body.groups).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          name: 'coordination.k8s.io',
          versions: expect.arrayContaining([coordination]),
          preferredVersion: coordination,
        }),
      ]),
    );
    expect((await place.api.get('/apis/coordination.k8s.io')).body).toMatchObject({
      ...{ kind: 'APIGroup', name: 'coordination.k8s.io', preferredVersion: coordination },
    });
    expect((await place.api.get('/apis/coordination.k8s.io/v1')).body).toMatchObject({
      ...{ kind: 'APIResourceList', groupVersion: 'coordination.k8s.io/v1' },
    });
    expect((await place.api.get('/apis/missing.example.com')).status).toBe(404);
    expect((await place.api.get('/apis/coordination.k8s.io/v99')).status).toBe(404);
  });

  test('all groups are in one document for clients that request it, and only if it changed', async () => {
    for (const path of ['/api', '/apis']) {
      const answer = await place.api.get<KubeList>(path, { accept: `${AGGREGATED},application/json` });
      expect(answer.headers['content-type']).toBe(AGGREGATED);
      expect(answer.body).toMatchObject({ kind: 'APIGroupDiscoveryList', apiVersion: 'apidiscovery.k8s.io/v2' });
      const group = answer.body.items.find(
        ({ metadata }) => (metadata.name ?? '') === (path === '/api' ? '' : 'coordination.k8s.io'),
      );
      const plural = path === '/api' ? 'configmaps' : 'leases';
      expect(group?.versions).toEqual([
        expect.objectContaining({
          version: 'v1',
          resources: expect.arrayContaining([
            expect.objectContaining({
              resource: plural,
              scope: 'Namespaced',
              responseKind: expect.objectContaining({ kind: plural === 'leases' ? 'Lease' : 'ConfigMap' }),
            }),
          ]),
        }),
      ]);
      await expectNotModified(place.api, path, answer, { accept: AGGREGATED });
    }
  });

  test('both forms list the same resources', async () => {
    const { body } = await place.api.get<KubeList>('/apis', { accept: AGGREGATED });
    const aggregated = body.items.flatMap(({ metadata, versions }) =>
      (versions as { version: string; resources?: { resource: string }[] }[]).flatMap((version) =>
        (version.resources ?? []).map(({ resource }) => `${metadata.name}/${version.version}/${resource}`),
      ),
    );
    // Test files that run beside this one bring kinds of their own, and take them away.
    const settled = (names: string[]) => names.filter((name) => !name.includes('.conformance.example.com')).sort();
    const plain: string[] = [];
    for (const groupVersion of settled(await groupVersions()))
      for (const { name } of await resourcesOf(`/apis/${groupVersion}`))
        if (!name.includes('/')) plain.push(`${groupVersion}/${name}`);
    expect(settled(aggregated)).toEqual(settled(plain));
  });

  test('all kinds that are listable by discovery can be listed, as lists of the kind', async () => {
    const paths = ['/api/v1', ...(await groupVersions()).map((groupVersion) => `/apis/${groupVersion}`)];
    let listed = 0;
    for (const path of paths.filter((one) => !one.includes('.conformance.example.com'))) {
      for (const { name, kind, verbs } of await resourcesOf(path)) {
        // The states of components are not stored, and have no version.
        if (name.includes('/') || name === 'componentstatuses' || !verbs.includes('list')) continue;
        const list = made(await place.api.list(`${path}/${name}?limit=1`));
        expect(list.kind, `${path}/${name}`).toBe(`${kind}List`);
        expect(list.apiVersion).toBe(path.replace(/^\/apis?\//, ''));
        expect(list.metadata.resourceVersion).toMatch(/./);
        listed += 1;
      }
    }
    expect(listed).toBeGreaterThan(8);
  });

  test('what no group has is not found', async () => {
    const missing = `/apis/coordination.k8s.io/v1/namespaces/${place.namespace}/missings`;
    expect((await place.api.get(missing)).status).toBe(404);
    expect((await place.api.post(missing, {})).status).toBe(404);
    expect(await place.api.get(place.path('configmaps', 'x', 'nothing'))).toMatchObject({ status: 404 });
    expect(await place.api.put(place.path('configmaps'), {})).toEqual(failure(405, 'MethodNotAllowed'));
  });
});
