import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { eventually } from '../support/api/eventually.ts';
import { JSON_PATCH, type KubeObject } from '../support/api/kube-api.ts';
import { skipFor } from '../support/skip.ts';
import { INIT, PORCH, REPOSITORY, revisionBody, useRepository, whyNoPackages } from './support/packages.ts';
import { failure, made, usePlace } from './support/place.ts';

describe('packages', skipFor(await whyNoPackages()), () => {
  const place = usePlace();
  const revisions = (...rest: string[]) => place.path(`${PORCH}/packagerevisions`, ...rest);
  const resources = (...rest: string[]) => place.path(`${PORCH}/packagerevisionresources`, ...rest);
  const nameOf = (workspace: string, packageName = 'web') => `${REPOSITORY}.${packageName}.${workspace}`;

  useRepository(place);

  const revision = (workspaceName: string, task: object, packageName = 'web') =>
    revisionBody(place, packageName, workspaceName, task);
  const edit = (name: string) => ({ type: 'edit', edit: { sourceRef: { name } } });

  async function filesOf(name: string): Promise<Record<string, string>> {
    return (made(await place.api.get(resources(name))).spec as { resources: Record<string, string> }).resources;
  }

  const step = (name: string, lifecycle: string) => place.api.patch(revisions(name), { spec: { lifecycle } });
  const approve = (name: string, lifecycle: string) =>
    place.api.patch(`${revisions(name)}/approval`, { spec: { lifecycle } });

  test('the APIService of packages names a Service that exists and selects nothing', async (context) => {
    const { body } = await place.api.get('/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.porch.kpt.dev');
    const { service } = body.spec as { service?: { namespace: string; name: string } };
    expect(service).toBeDefined();
    const found = await place.api.get(`/api/v1/namespaces/${service?.namespace}/services/${service?.name}`);
    if (found.status === 403) return context.skip('services of another namespace may not be read here');
    expect((found.body.spec as { selector?: object }).selector ?? {}).toEqual({});
  });

  test('a revision can be made from the object of another one, whose resourceVersion is ignored', async () => {
    const first = made(await place.api.post(revisions(), revision('v1', INIT, 'copied')));
    const { metadata } = first as { metadata: object };
    const next = { ...revision('v1', INIT, 'copied-again'), metadata };
    expect(made(await place.api.post(revisions(), next))).toMatchObject({
      metadata: { name: nameOf('v1', 'copied-again') },
    });
  });

  test('discovery lists packages and the sub-resources of revisions', async () => {
    const { body } = await place.api.get(`/apis/${PORCH}`);
    const names = (body.resources as { name: string }[]).map(({ name }) => name);
    expect(names).toEqual(
      expect.arrayContaining(['packagerevisions', 'packagerevisions/approval', 'packagerevisionresources', 'packages']),
    );
  });

  test('a package is published from a draft, and deleted', async () => {
    const name = nameOf('v1');
    const created = made(await place.api.post(revisions(), revision('v1', INIT)));
    expect(created).toMatchObject({ metadata: { name }, spec: { lifecycle: 'Draft', packageName: 'web' } });
    expect(created.metadata.uid).toBe(uidOf(place.namespace, name));
    expect(await approve(name, 'Published')).toMatchObject({
      text: expect.stringContaining('cannot approve package with Draft lifecycle value'),
    });
    expect(made(await step(name, 'Proposed')).spec).toMatchObject({ lifecycle: 'Proposed' });
    expect((await step(name, 'Published')).status).toBe(422);
    const published = made(await approve(name, 'Published'));
    expect(published).toMatchObject({
      metadata: { labels: { 'kpt.dev/latest-revision': 'true' } },
      spec: { lifecycle: 'Published', revision: 1 },
      status: { publishTimestamp: expect.stringMatching(/Z$/) },
    });
    expect(await place.api.delete(revisions(name))).toEqual(
      failure(403, 'Forbidden', {
        message: expect.stringContaining(
          "must be proposed for deletion by setting spec.lifecycle to 'DeletionProposed'",
        ),
      }),
    );
    made(await approve(name, 'DeletionProposed'));
    made(await approve(name, 'Published'));
    expect(made(await step(name, 'DeletionProposed')).spec).toMatchObject({ lifecycle: 'DeletionProposed' });
    expect((await place.api.delete(revisions(name))).status).toBe(200);
    expect((await place.api.get(revisions(name))).status).toBe(404);
  });

  test('files are read and written by version, and replaced as a whole by an update', async () => {
    const name = nameOf('v1', 'files');
    made(await place.api.post(revisions(), revision('v1', INIT, 'files')));
    const live = made(await place.api.get(resources(name)));
    const files = await filesOf(name);
    expect(Object.keys(files)).toEqual(expect.arrayContaining(['Kptfile', 'README.md']));
    const spec = { ...(live.spec as object), resources: { ...files, 'a.yaml': 'a: 1\n' } };
    const { resourceVersion: _none, ...unversioned } = live.metadata;
    expect(await place.api.put(resources(name), { ...live, metadata: unversioned, spec })).toMatchObject({
      status: expect.toSatisfy((code) => code >= 400 && code < 500),
      text: expect.stringContaining('resourceVersion must be specified for an update'),
    });
    made(await place.api.put(resources(name), { ...live, spec }));
    expect(await place.api.put(resources(name), { ...live, spec })).toEqual(failure(409, 'Conflict'));
    expect((await filesOf(name))['a.yaml']).toBe('a: 1\n');

    const next = made(await place.api.get(resources(name)));
    const { 'README.md': _gone, ...fewer } = await filesOf(name);
    made(await place.api.put(resources(name), { ...next, spec: { ...(next.spec as object), resources: fewer } }));
    expect(await filesOf(name)).not.toHaveProperty('README.md');
    for (const bad of [{}, { 'a.yaml': 'a: 1\n' }]) {
      const last = made(await place.api.get(resources(name)));
      const answer = await place.api.put(resources(name), {
        ...last,
        spec: { ...(last.spec as object), resources: bad },
      });
      expect(answer.status, answer.text).toBeGreaterThanOrEqual(400);
    }
    expect(Object.keys(await filesOf(name))).toContain('Kptfile');
  });

  test('a patch of files removes only files that it names', async () => {
    const name = nameOf('v1', 'patched');
    made(await place.api.post(revisions(), revision('v1', INIT, 'patched')));
    made(await place.api.patch(resources(name), { spec: { resources: { 'b.yaml': 'b: 1\n' } } }));
    made(
      await place.api.patch(
        resources(name),
        [{ op: 'add', path: '/spec/resources/c.yaml', value: 'c: 1\n' }],
        JSON_PATCH,
      ),
    );
    expect(Object.keys(await filesOf(name))).toEqual(
      expect.arrayContaining(['Kptfile', 'README.md', 'b.yaml', 'c.yaml']),
    );
    made(await place.api.patch(resources(name), { spec: { resources: { 'b.yaml': null } } }));
    expect(await filesOf(name)).not.toHaveProperty('b.yaml');
    for (const path of ['../out.yaml', '/etc/passwd', 'a/../../b', '.git/config']) {
      const answer = await place.api.patch(resources(name), { spec: { resources: { [path]: 'x' } } });
      expect([400, 403, 422], answer.text).toContain(answer.status);
    }
  });

  test('gates are in the Kptfile, and hold a proposal up until their conditions are true', async () => {
    const name = nameOf('v1', 'gated');
    made(await place.api.post(revisions(), revision('v1', INIT, 'gated')));
    made(
      await place.api.patch(revisions(name), { spec: { readinessGates: [{ conditionType: 'example.com/Tested' }] } }),
    );
    expect((await filesOf(name)).Kptfile).toContain('example.com/Tested');
    // Porch leaves gates to its clients.
    if ((await place.api.get('/version')).text.includes('sluice'))
      expect(await step(name, 'Proposed')).toEqual(
        failure(403, 'Forbidden', { message: expect.stringContaining('gate example.com/Tested is closed') }),
      );
    const condition = { type: 'example.com/Tested', status: 'True', reason: 'Done', message: '' };
    const status = await place.api.patch(`${revisions(name)}/status`, { status: { conditions: [condition] } });
    expect(made(status).status).toMatchObject({
      conditions: expect.arrayContaining([expect.objectContaining({ type: 'example.com/Tested', status: 'True' })]),
    });
    made(await step(name, 'Proposed'));
    expect(made(await approve(name, 'Published')).spec).toMatchObject({ lifecycle: 'Published' });
  });

  test('a revision is copied and cloned, once a workspace', async () => {
    const name = nameOf('v1', 'source');
    made(await place.api.post(revisions(), revision('v1', INIT, 'source')));
    const early = await place.api.post(revisions(), revision('v2', edit(name), 'source'));
    expect(early.status, early.text).toBeGreaterThanOrEqual(400);
    made(await step(name, 'Proposed'));
    made(await approve(name, 'Published'));
    made(await place.api.post(revisions(), revision('v2', edit(name), 'source')));
    const again = await place.api.post(revisions(), revision('v2', edit(name), 'source'));
    expect(again.text).toMatch(/workspaceNames must be unique|already exists/);
    const clone = { type: 'clone', clone: { upstreamRef: { upstreamRef: { name } } } };
    const cloned = made(await place.api.post(revisions(), revision('v1', clone, 'copy-of-source')));
    expect(cloned.status).toMatchObject({ upstreamLock: { git: { directory: expect.stringContaining('source') } } });
    const used = await place.api.patch(`${revisions(name)}/approval`, { spec: { lifecycle: 'DeletionProposed' } });
    made(used);
    expect(await place.api.delete(revisions(name))).toEqual(
      failure(403, 'Forbidden', { message: expect.stringContaining('referenced as upstream by') }),
    );
  });

  test('revisions are selected by their fields, and watched', async () => {
    const { metadata } = made(await place.api.list(revisions()));
    using watch = await place.api.watch(
      `${revisions()}?fieldSelector=spec.lifecycle%3DProposed&resourceVersion=${metadata.resourceVersion}`,
    );
    const name = nameOf('v1', 'watched');
    made(await place.api.post(revisions(), revision('v1', INIT, 'watched')));
    made(await step(name, 'Proposed'));
    made(await step(name, 'Draft'));
    expect(await watch.changes(2)).toEqual([`ADDED ${name}`, `DELETED ${name}`]);
    const found = async (selector: string) =>
      made(await place.api.list(`${revisions()}?fieldSelector=${encodeURIComponent(selector)}`)).items.map(
        (item: KubeObject) => item.metadata.name,
      );
    expect(await found('spec.packageName=watched,spec.repository=packages')).toEqual([name]);
    expect(await found('spec.packageName=watched,spec.workspaceName=v2')).toEqual([]);
    for (const selector of ['spec.nothing=x', 'spec.lifecycle=Nothing'])
      expect(await place.api.get(`${revisions()}?fieldSelector=${encodeURIComponent(selector)}`)).toEqual(
        failure(400, 'BadRequest'),
      );
  });

  test('packages are shown, and not written', async () => {
    const packages = place.path(`${PORCH}/packages`);
    made(await place.api.post(revisions(), revision('v1', INIT, 'shown')));
    const list = made(await place.api.list(packages));
    expect(list.kind).toBe('PorchPackageList');
    expect(list.items.map(({ metadata }) => metadata.name)).toContain(`${REPOSITORY}.shown`);
    expect(await place.api.post(packages, {})).toEqual(failure(405, 'MethodNotAllowed'));
    expect(await place.api.delete(`${packages}/${REPOSITORY}.shown`)).toEqual(failure(405, 'MethodNotAllowed'));
  });

  test('an approval is a right of its own', async () => {
    const name = nameOf('v1', 'approved');
    made(await place.api.post(revisions(), revision('v1', INIT, 'approved')));
    made(await step(name, 'Proposed'));
    const rbac = 'rbac.authorization.k8s.io';
    const rules = [
      { apiGroups: ['porch.kpt.dev'], resources: ['packagerevisions'], verbs: ['get', 'patch', 'update'] },
    ];
    made(await place.api.post(place.path(`${rbac}/v1/roles`), { metadata: { name: 'editor' }, rules }));
    const binding = {
      metadata: { name: 'editor' },
      roleRef: { apiGroup: rbac, kind: 'Role', name: 'editor' },
      subjects: [{ apiGroup: rbac, kind: 'User', name: 'editor' }],
    };
    made(await place.api.post(place.path(`${rbac}/v1/rolebindings`), binding));
    const headers = { 'impersonate-user': 'editor', 'content-type': 'application/merge-patch+json' };
    const asEditor = (path: string, lifecycle: string) =>
      place.api.send('PATCH', path, { body: { spec: { lifecycle } }, headers });
    await eventually(
      () => asEditor(revisions(name), 'Proposed'),
      ({ status }) => status === 200,
    );
    expect(await asEditor(`${revisions(name)}/approval`, 'Published')).toEqual(failure(403, 'Forbidden'));
    expect((await asEditor(revisions(name), 'Published')).status).toBe(422);
  });
});

/** The uid that Porch gives to a package revision: UUIDv5 of its name. */
function uidOf(namespace: string, name: string): string {
  const space = Buffer.from('aac71d915c67456f8fd2902ef6da820e', 'hex');
  const text = `packagerevision:${PORCH}/${namespace}/${name}`.toLowerCase();
  const bytes = createHash('sha1').update(space).update(text).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x50;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
