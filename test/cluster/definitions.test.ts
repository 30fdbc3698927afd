import { describe, expect, test } from 'vitest';
import { beforeAllServed, failure, made, pathOf, usePlace } from '../conformance/support/place.ts';
import { APPLY_PATCH } from '../support/api/kube-api.ts';
import { DEFINITIONS, readDefinitions, readExamples } from './support/install-definitions.ts';

const place = usePlace();
/** Packages are served by aggregation, and the others are no kinds of a server. */
const NOT_DEFINED = /^(porch\.kpt\.dev|kpt\.dev|req\.nephio\.org)\//;

describe('a kube-apiserver', () => {
  test('serves every definition of deploy/crds', async () => {
    for (const { metadata } of readDefinitions()) {
      const { status } = made(await place.api.get(`${DEFINITIONS}/${metadata.name}`));
      const { conditions } = status as { readonly conditions: readonly { type: string; status: string }[] };
      const states = conditions.map(({ type, status: state }) => `${type}=${state}`).sort();
      // A schema that is not structural, or an API that is not approved, would be another condition.
      expect(states, metadata.name).toEqual(['Established=True', 'NamesAccepted=True']);
    }
  });

  test('has the same definition back that was applied: it prunes and defaults nothing', async () => {
    for (const definition of readDefinitions()) {
      const { spec } = made(await place.api.get(`${DEFINITIONS}/${definition.metadata.name}`));
      expect(spec, definition.metadata.name).toMatchObject(definition.spec as object);
    }
  });

  test.each(exampleObjects())('admits $kind $metadata.name of examples/$file', async ({ file: _file, ...object }) => {
    const { apiVersion, kind, metadata } = object;
    const [group, version] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion];
    const base = group === '' ? `/api/${version}` : `/apis/${apiVersion}`;
    const { resources } = made(await place.api.get<{ resources: Resource[] }>(base));
    const resource = resources.find((one) => one.kind === kind && !one.name.includes('/'));
    const name = `${group}${group === '' ? '' : `/${version}/`}${resource?.name}`;
    const path = resource?.namespaced ? place.path(name) : pathOf(name);
    const local = resource?.namespaced ? { ...metadata, namespace: place.namespace } : metadata;
    const query = 'dryRun=All&fieldValidation=Strict&fieldManager=example';
    const applied = { ...object, metadata: local };
    made(await place.api.patch(`${path}/${metadata.name}?${query}`, applied, APPLY_PATCH));
  });

  describe('keeps the rules of a Repository', () => {
    const path = (...rest: string[]) => place.path('config.porch.kpt.dev/v1alpha1/repositories', ...rest);
    const spec = { type: 'git', git: { repo: 'https://git.example.com/a.git' } };
    beforeAllServed(async () => {
      made(await place.api.post(path(), repository('ruled', spec)));
    });

    test('what identifies it is immutable', async () => {
      const message = expect.stringContaining('git.repo is immutable');
      const changed = await place.api.patch(path('ruled'), {
        spec: { git: { repo: 'https://git.example.com/b.git' } },
      });
      expect(changed).toEqual(failure(422, 'Invalid', { message }));
      expect((await place.api.patch(path('ruled'), { spec: { description: 'changed' } })).status).toBe(200);
    });

    test('what identifies it cannot be removed either, to be set to another value', async () => {
      const message = expect.stringContaining('git.repo is immutable');
      const removed = await place.api.patch(path('ruled'), { spec: { git: null } });
      expect(removed).toEqual(failure(422, 'Invalid', { message }));
    });

    test.each([
      ['no form of an address', { repo: 'git.example.com/a.git' }, 'must be an https:// or ssh:// URL'],
      ['a password in its address', { repo: 'https://me:x@git.example.com/a.git' }, 'must not contain a user'],
      ['a query in its address', { repo: 'https://git.example.com/a.git?x=1' }, 'must not contain a query'],
      ['a branch with a space', { branch: 'no branch' }, 'must be a name that Git takes as a branch'],
      ['a directory above its own', { directory: 'a/../../b' }, 'must stay inside the repository'],
    ])('%s is refused', async (_what, git, text) => {
      const bad = repository('bad', { ...spec, git: { ...spec.git, ...git } });
      const message = expect.stringContaining(text);
      expect(await place.api.post(`${path()}?dryRun=All`, bad)).toEqual(failure(422, 'Invalid', { message }));
    });

    test.each([
      ['git@example.com:team/a.git', 'release/1.x', '/a b/c'],
      ['ssh://git@example.com:2222/a.git', 'main', '.'],
      ['file:///srv/git/a%20b.git', '@a', ''],
      ['sluice:///a-1.git', 'ä', '/'],
    ])('%s is accepted', async (repo, branch, directory) => {
      const good = repository('good', { ...spec, git: { repo, branch, directory } });
      made(await place.api.post(`${path()}?dryRun=All`, good));
    });

    test('its name is a DNS label', async () => {
      const message = expect.stringContaining('the name must be lower case letters');
      for (const name of ['with.dots', 'x'.repeat(64)])
        expect(await place.api.post(path(), repository(name, spec))).toEqual(failure(422, 'Invalid', { message }));
    });

    test('its status is a sub-resource', async () => {
      const status = {
        conditions: [{ type: 'Ready', status: 'True', reason: 'Ready', lastTransitionTime: '2026-01-02T03:04:05Z' }],
      };
      made(await place.api.patch(path('ruled'), { status }));
      // Sluice writes a status of its own.
      expect((await place.api.get(path('ruled'))).text).not.toContain('2026-01-02T03:04:05Z');
      expect(made(await place.api.patch(`${path('ruled')}/status`, { status })).status).toMatchObject(status);
    });

    test('has its columns in tables', async () => {
      const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
      const { columnDefinitions } = made(await place.api.get<{ columnDefinitions: Column[] }>(path(), { accept }));
      expect(columnDefinitions.filter(({ priority }) => priority === 0).map(({ name }) => name)).toEqual([
        ...['Name', 'Type', 'Content', 'Sync schedule', 'Deployment', 'Ready', 'Address', 'Age'],
      ]);
    });
  });
});

test.each([
  [
    'functionpolicies',
    'sluice.dev/v1alpha1',
    'FunctionPolicy',
    { rules: [{ image: 'set-labels', exec: 'x', forbid: 'no' }] },
    'must have exactly one of builtIn',
  ],
  [
    'packagepolicies',
    'sluice.dev/v1alpha1',
    'PackagePolicy',
    { validFor: [{ conditionType: 'a', duration: '1 day' }] },
    'duration',
  ],
  [
    'packagepolicies',
    'sluice.dev/v1alpha1',
    'PackagePolicy',
    { approval: { quorum: { required: 3, from: ['ben', 'cleo'] } } },
    'required can never be met by the users of from; name more users, or a group',
  ],
  [
    'waveplans',
    'sluice.dev/v1alpha1',
    'WavePlan',
    { waves: [{ name: 'all', percent: 100, approval: { required: 2, from: ['ben'] } }] },
    'required can never be met by the users of from',
  ],
  [
    'ipprefixes',
    'ipam.resource.nephio.org/v1alpha1',
    'IPPrefix',
    { networkInstance: { name: 'vpc' }, prefix: '10.0.0.0' },
    'spec.prefix in body should match',
  ],
])('a rule of %s is in its definition', async (plural, apiVersion, kind, spec, text) => {
  const path = `${place.path(`${apiVersion}/${plural}`)}?dryRun=All`;
  const message = expect.stringContaining(text);
  const answer = await place.api.post(path, { apiVersion, kind, metadata: { name: 'bad' }, spec });
  expect(answer).toEqual(failure(422, 'Invalid', { message }));
});

interface Column {
  readonly name: string;
  /** Above 0, kubectl shows it with `-o wide` only. */
  readonly priority: number;
}

interface Resource {
  readonly name: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

function repository(name: string, spec: object) {
  return { apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'Repository', metadata: { name }, spec };
}

/** The objects of the examples that a cluster with the definitions has kinds for, with their files. */
function exampleObjects() {
  return readExamples().filter(({ apiVersion }) => !NOT_DEFINED.test(apiVersion));
}
