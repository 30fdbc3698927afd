import { describe, expect, test } from 'vitest';
import { type Answer, JSON_PATCH, type KubeList, type KubeObject, STRATEGIC_PATCH } from '../support/api/kube-api.ts';
import { skipFor } from '../support/skip.ts';
import { whyNoPackages } from './support/packages.ts';
import { failure, made, usePlace } from './support/place.ts';
import { definedKind, packageKind } from './support/subjects.ts';

interface Table {
  readonly columnDefinitions: readonly { readonly name: string; readonly priority: number }[];
  readonly rows: readonly { readonly cells: readonly unknown[]; readonly object: KubeObject }[];
}

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';
const PARTIALS = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io';
const withoutPackages = await whyNoPackages();

/**
 * The conventions that hold for each kind, whichever server serves it. On a kube-apiserver the first kind is its own and the second one that
 * of an aggregated server, behind its proxy; on `sluice up` both are of one server.
 */
describe.each([
  ['a defined kind', definedKind, undefined],
  ['package revisions', packageKind, withoutPackages],
] as const)('%s', (_, subjectOf, missing) => {
  describe('by the conventions', skipFor(missing), () => {
    const place = usePlace();
    const subject = subjectOf(place);
    const resource = `${subject.plural}.${subject.group}`;
    let counter = 0;

    /** A label that only the objects of one test have. */
    function topic() {
      counter += 1;
      const value = `t${counter}`;
      return {
        label: { topic: value },
        selector: `labelSelector=topic%3D${value}`,
        name: (end: string) => value + end,
      };
    }
    const one = (name: string, query = '') => `${subject.path(subject.nameOf(name))}${query}`;
    const all = (query: string) => `${subject.path()}?${query}`;
    const create = async (name: string, metadata: object = {}) =>
      made(await place.api.post(subject.path(), subject.body(name, metadata)));
    const annotation = (value: string | null) => ({ metadata: { annotations: { 'example.com/note': value } } });
    const noteOf = ({ metadata }: KubeObject) =>
      (metadata.annotations as Record<string, string> | undefined)?.['example.com/note'];
    const namesIn = ({ items }: KubeList) => items.map(({ metadata }) => metadata.name);

    describe('reads', () => {
      test('an object has its kind, and a missing one is reported by kind and name', async () => {
        const { label, name } = topic();
        await create(name('a'), { labels: label });
        expect(made(await place.api.get(one(name('a'))))).toMatchObject({
          kind: subject.kind,
          metadata: { name: subject.nameOf(name('a')), namespace: place.namespace, uid: expect.stringMatching(/./) },
        });
        expect(await place.api.get(one('missing'))).toEqual(
          failure(404, 'NotFound', {
            message: `${resource} "${subject.nameOf('missing')}" not found`,
            details: { name: subject.nameOf('missing'), group: subject.group, kind: subject.plural },
          }),
        );
      });

      test('pages show the snapshot of the first one', async () => {
        const { label, selector, name } = topic();
        for (const end of ['a', 'b', 'c', 'd']) await create(name(end), { labels: label });
        const first = made(await place.api.list(all(`${selector}&limit=2`)));
        expect(first.kind).toBe(`${subject.kind}List`);
        await create(name('c-later'), { labels: label });
        made(await place.api.delete(one(name('d'))));
        const token = encodeURIComponent(first.metadata.continue ?? '');
        const rest = made(await place.api.list(all(`${selector}&limit=10&continue=${token}`)));
        expect([...namesIn(first), ...namesIn(rest)]).toEqual(
          ['a', 'b', 'c', 'd'].map((end) => subject.nameOf(name(end))),
        );
        expect(rest.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
        expect(await place.api.get(all('limit=2&continue=nonsense'))).toEqual(failure(400, 'BadRequest'));
      });

      test('selectors by name, and only by fields that the kind has', async () => {
        const { name } = topic();
        for (const end of ['a', 'b']) await create(name(end));
        const named = `fieldSelector=metadata.name%3D${subject.nameOf(name('a'))}`;
        expect(namesIn(made(await place.api.list(all(named))))).toEqual([subject.nameOf(name('a'))]);
        expect(await place.api.get(all('fieldSelector=spec.nothing%3Dx'))).toEqual(
          failure(400, 'BadRequest', { message: expect.stringMatching(/spec\.nothing/) }),
        );
        expect(await place.api.get(all('labelSelector=a%3Db%3Dc'))).toEqual(failure(400, 'BadRequest'));
      });

      test('a version that the client requests', async () => {
        const { label, selector, name } = topic();
        await create(name('a'), { labels: label });
        const { metadata } = made(await place.api.list(all(selector)));
        for (const query of ['resourceVersion=0', `resourceVersion=${metadata.resourceVersion}`])
          expect(namesIn(made(await place.api.list(all(`${selector}&${query}`)))), query).toHaveLength(1);
        const future = `${BigInt(metadata.resourceVersion) + 1_000_000_000n}`;
        const late = `resourceVersion=${future}&resourceVersionMatch=NotOlderThan&timeoutSeconds=1`;
        expect(await place.api.get(all(late))).toEqual(failure(504, 'Timeout'));
        expect(await place.api.get(all('resourceVersion=abc&resourceVersionMatch=Exact'))).toMatchObject({
          status: expect.toSatisfy((code: number) => [400, 422].includes(code)),
        });
      });

      test('tables, and metadata alone', async () => {
        const { label, selector, name } = topic();
        await create(name('a'), { labels: label });
        const { columnDefinitions, rows } = made(await place.api.get<Table>(all(selector), { accept: TABLE }));
        expect(columnDefinitions[0]).toMatchObject({ name: 'Name', priority: 0 });
        expect(rows).toMatchObject([{ cells: expect.any(Array), object: { kind: 'PartialObjectMetadata' } }]);
        expect(rows[0]?.cells).toHaveLength(columnDefinitions.length);
        expect(rows[0]?.cells[0]).toBe(subject.nameOf(name('a')));
        const partial = made(await place.api.get<KubeList>(all(selector), { accept: PARTIALS }));
        expect(partial.kind).toBe('PartialObjectMetadataList');
        expect(partial.items[0]).not.toHaveProperty('spec');
        expect(await place.api.get(all(selector), { accept: 'text/html' })).toEqual(failure(406, 'NotAcceptable'));
        expect(await place.api.get(one('missing'), { accept: TABLE })).toEqual(failure(404, 'NotFound'));
      });

      test('responses are compressed for clients that accept it', async () => {
        const { label, selector, name } = topic();
        // A server compresses a response that is large enough.
        const metadata = { labels: label, annotations: { 'example.com/note': 'x'.repeat(150_000) } };
        await create(name('a'), metadata);
        const list = await place.api.get<KubeList>(all(selector), { 'accept-encoding': 'gzip' });
        expect(namesIn(made(list))).toHaveLength(1);
        expect(list.headers['content-encoding']).toBe('gzip');
      });
    });

    describe('watches', () => {
      test('send every change in the order of the versions, and resume from any', async () => {
        const { label, selector, name } = topic();
        const start = made(await place.api.list(all(selector))).metadata.resourceVersion;
        using watch = await place.api.watch(all(`${selector}&resourceVersion=${start}`));
        await create(name('a'), { labels: label });
        made(await place.api.patch(one(name('a')), annotation('1')));
        await create(name('b'), { labels: label });
        made(await place.api.delete(one(name('a'))));
        const expected = ['ADDED a', 'MODIFIED a', 'ADDED b', 'DELETED a'].map((event) => {
          const [type = '', end = ''] = event.split(' ');
          return `${type} ${subject.nameOf(name(end))}`;
        });
        const events = [];
        while (events.length < 4) events.push(await watch.change());
        expect(events.map(({ type, object }) => `${type} ${object.metadata.name}`)).toEqual(expected);
        const versions = events.map(({ object }) => BigInt(object.metadata.resourceVersion));
        expect(versions).toEqual([...new Set(versions)].sort((a, b) => (a < b ? -1 : 1)));
        for (const [index, version] of versions.slice(0, -1).entries()) {
          using resumed = await place.api.watch(all(`${selector}&resourceVersion=${version}`));
          expect(await resumed.changes(3 - index)).toEqual(expected.slice(index + 1));
        }
      });

      test('of a label send when an object gets it and loses it', async () => {
        const { label, selector, name } = topic();
        await create(name('a'));
        const start = made(await place.api.list(all(selector))).metadata.resourceVersion;
        using watch = await place.api.watch(all(`${selector}&resourceVersion=${start}`));
        made(await place.api.patch(one(name('a')), { metadata: { labels: label } }));
        made(await place.api.patch(one(name('a')), { metadata: { labels: { topic: null } } }));
        const object = subject.nameOf(name('a'));
        expect(await watch.changes(2)).toEqual([`ADDED ${object}`, `DELETED ${object}`]);
      });

      test('with initial events mark their end with a bookmark, and continue', async () => {
        const { label, selector, name } = topic();
        for (const end of ['a', 'b']) await create(name(end), { labels: label });
        const stream = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
        using watch = await place.api.watch(all(`${selector}&${stream}`));
        expect((await watch.changes(2)).sort()).toEqual(['a', 'b'].map((end) => `ADDED ${subject.nameOf(name(end))}`));
        expect(await watch.next()).toMatchObject({
          type: 'BOOKMARK',
          object: { kind: subject.kind, metadata: { annotations: { 'k8s.io/initial-events-end': 'true' } } },
        });
        made(await place.api.delete(one(name('a'))));
        expect(await watch.changes(1)).toEqual([`DELETED ${subject.nameOf(name('a'))}`]);
      });

      test('end after the timeout of the client', async () => {
        const start = made(await place.api.list(all('limit=1'))).metadata.resourceVersion;
        using watch = await place.api.watch(all(`timeoutSeconds=1&resourceVersion=${start}`));
        expect((await watch.rest()).filter(({ type }) => type === 'ERROR')).toEqual([]);
      });

      test('from a version that is gone end with Expired, or send all changes since', async () => {
        const { name } = topic();
        await create(name('a'));
        using watch = await place.api.watch(all('resourceVersion=1'));
        const first = await watch.next();
        if (first?.type === 'ERROR')
          expect(first.object).toMatchObject({ kind: 'Status', code: 410, reason: 'Expired' });
        else expect(first?.type).toBe('ADDED');
      });

      test('are refused for an invalid selector or option', async () => {
        expect(await place.api.get(all('watch=true&fieldSelector=spec.nothing%3Dx'))).toEqual(
          failure(400, 'BadRequest'),
        );
        expect(await place.api.get(all('watch=true&sendInitialEvents=true'))).toEqual(failure(422, 'Invalid'));
      });
    });

    describe('writes', () => {
      test('an update of another version is a conflict, with the text that clients match', async () => {
        const { name } = topic();
        const first = await create(name('a'));
        made(await place.api.patch(one(name('a')), annotation('1')));
        const conflict = failure(409, 'Conflict', {
          message: `Operation cannot be fulfilled on ${resource} "${subject.nameOf(name('a'))}": the object has been modified; please apply your changes to the latest version and try again`,
          details: { name: subject.nameOf(name('a')), group: subject.group, kind: subject.plural },
        });
        const changed = { ...first, metadata: { ...first.metadata, annotations: { 'example.com/note': '2' } } };
        expect(await place.api.put(one(name('a')), changed)).toEqual(conflict);
        const { resourceVersion } = first.metadata;
        const stale = { metadata: { resourceVersion, annotations: { 'example.com/note': '2' } } };
        expect(await place.api.patch(one(name('a')), stale)).toEqual(conflict);
        expect(noteOf(made(await place.api.get(one(name('a')))))).toBe('1');
      });

      test('a second object of the name is refused', async () => {
        const { name } = topic();
        await create(name('a'));
        const again = await place.api.post(subject.path(), subject.body(name('a')));
        expect(again).toEqual(failure(409, 'AlreadyExists'));
        expect(again.body.message).toContain('already exists');
      });

      test('JSON and merge patches', async () => {
        const { name } = topic();
        await create(name('a'), { annotations: { 'example.com/note': '1' } });
        const pointer = '/metadata/annotations/example.com~1note';
        const operations = [
          { op: 'test', path: pointer, value: '1' },
          { op: 'replace', path: pointer, value: '2' },
        ];
        expect(noteOf(made(await place.api.patch(one(name('a')), operations, JSON_PATCH)))).toBe('2');
        expect(await place.api.patch(one(name('a')), operations, JSON_PATCH)).toEqual(failure(422, 'Invalid'));
        expect(noteOf(made(await place.api.patch(one(name('a')), annotation(null))))).toBeUndefined();
        const text = await place.api.patch(one(name('a')), 'x', 'text/plain');
        expect(text).toEqual(failure(415, 'UnsupportedMediaType'));
        expect((await place.api.patch(one('missing'), annotation('1'))).status).toBe(404);
      });

      test('a strategic merge patch is refused, since no struct has its rules', async () => {
        const { name } = topic();
        await create(name('a'));
        const answer = await place.api.patch(one(name('a')), annotation('1'), STRATEGIC_PATCH);
        expect(answer).toEqual(failure(415, 'UnsupportedMediaType'));
        expect(answer.body.message).toContain('accepted media types include: application/json-patch+json');
      });

      test('server-side apply owns fields, and reports conflicts', async () => {
        const { name } = topic();
        const live = await create(name('a'));
        const applied = (manager: string, value: string, more = '') =>
          place.api.apply(
            one(name('a')),
            manager,
            {
              ...{ apiVersion: live.apiVersion, kind: live.kind },
              metadata: { name: subject.nameOf(name('a')), annotations: { 'example.com/note': value } },
            },
            more,
          );
        expect(noteOf(made(await applied('one', '1')))).toBe('1');
        const conflict = await applied('two', '2');
        expect(conflict).toEqual(failure(409, 'Conflict'));
        expect(conflict.body.message).toContain('conflict with "one": .metadata.annotations.example.com/note');
        const forced = made(await applied('two', '2', '&force=true'));
        expect(noteOf(forced)).toBe('2');
        const owners = (forced.metadata.managedFields as { manager: string; operation: string }[]).map(
          ({ manager, operation }) => `${manager} ${operation}`,
        );
        expect(owners).toContain('two Apply');
        expect(owners).not.toContain('one Apply');
      });

      test('dry runs return the result and change nothing', async () => {
        const { name } = topic();
        const dry = '?dryRun=All';
        const created = made(await place.api.post(`${subject.path()}${dry}`, subject.body(name('a'))));
        expect(created.metadata.name).toBe(subject.nameOf(name('a')));
        expect((await place.api.get(one(name('a')))).status).toBe(404);
        const live = await create(name('a'));
        expect(noteOf(made(await place.api.patch(one(name('a'), dry), annotation('1'))))).toBe('1');
        made(await place.api.delete(one(name('a'), dry)));
        const after = made(await place.api.get(one(name('a'))));
        expect(after.metadata.resourceVersion).toBe(live.metadata.resourceVersion);
        expect((await place.api.patch(one(name('a'), '?dryRun=Some'), annotation('1'))).status).toBe(422);
      });

      test('unknown fields are refused, reported or ignored, as the client requests', async () => {
        const { name } = topic();
        const unknown = { ...subject.body(name('a')), nothing: 1 };
        const post = (validation: string): Promise<Answer> =>
          place.api.post(`${subject.path()}?dryRun=All&fieldValidation=${validation}`, unknown);
        const strict = await post('Strict');
        expect(strict).toEqual(failure(400, 'BadRequest'));
        expect(strict.body.message).toContain('strict decoding error: unknown field "nothing"');
        const warned = await post('Warn');
        made(warned);
        expect(warned.headers.warning).toBe('299 - "unknown field \\"nothing\\""');
        const ignored = await post('Ignore');
        made(ignored);
        expect(ignored.headers).not.toHaveProperty('warning');
      });

      test('the kind and the namespace of an object are those of the path', async () => {
        const { name } = topic();
        const body = subject.body(name('a')) as { metadata: object };
        expect([400, 422]).toContain((await place.api.post(subject.path(), { ...body, kind: 'Other' })).status);
        const elsewhere = { ...body, metadata: { ...body.metadata, namespace: 'elsewhere' } };
        expect(await place.api.post(subject.path(), elsewhere)).toEqual(
          failure(400, 'BadRequest', {
            message: 'the namespace of the provided object does not match the namespace sent on the request',
          }),
        );
      });

      test('an invalid body or a method that the path does not have is refused', async () => {
        for (const text of ['', '{', '[]'])
          expect([400, 422], text).toContain((await place.api.post(subject.path(), text)).status);
        // kube-apiserver ignores the name in the path of a defined kind.
        expect([400, 405]).toContain((await place.api.send('POST', subject.path('x'), { body: {} })).status);
        const put = await place.api.put(subject.path(), subject.body(topic().name('a')));
        expect([400, 405]).toContain(put.status);
        expect((await place.api.get(`${subject.path('x')}/nowhere`)).status).toBe(404);
      });

      test('a deletion has preconditions, and returns the object or a Status', async () => {
        const { name } = topic();
        const { metadata } = await create(name('a'));
        const other = { preconditions: { uid: '00000000-0000-0000-0000-000000000000' } };
        const refused = await place.api.delete(one(name('a')), other);
        expect(refused).toEqual(failure(409, 'Conflict'));
        expect(refused.body.message).toContain(
          'the UID in the precondition (00000000-0000-0000-0000-000000000000) does not match the UID in record',
        );
        const deleted = made(await place.api.delete(one(name('a')), { preconditions: { uid: metadata.uid } }));
        expect([subject.kind, 'Status']).toContain(deleted.kind);
        expect((await place.api.get(one(name('a')))).status).toBe(404);
        expect((await place.api.delete(one(name('a')))).status).toBe(404);
      });

      test('finalizers delay a deletion', async () => {
        const { name } = topic();
        await create(name('a'), { finalizers: ['example.com/keep'] });
        expect((await place.api.delete(one(name('a')))).status).toBe(200);
        const marked = made(await place.api.get(one(name('a'))));
        expect(marked.metadata.deletionTimestamp).toMatch(/Z$/);
        made(await place.api.patch(one(name('a')), { metadata: { finalizers: null } }));
        expect((await place.api.get(one(name('a')))).status).toBe(404);
      });
    });

    describe('access and discovery', () => {
      test('a user without rights is refused, with the text of RBAC', async () => {
        const answer = await place.api.get(subject.path(), { 'impersonate-user': 'visitor' });
        expect(answer).toEqual(
          failure(403, 'Forbidden', {
            message: `${resource} is forbidden: User "visitor" cannot list resource "${subject.plural}" in API group "${subject.group}" in the namespace "${place.namespace}"`,
            details: { group: subject.group, kind: subject.plural },
          }),
        );
      });

      test('no user is anonymous by accident', async () => {
        const wrong = place.api.as({ token: 'wrong' });
        expect(await wrong.get(subject.path())).toEqual(failure(401, 'Unauthorized'));
        wrong.close();
      });

      test('the kind is in discovery and in OpenAPI', async () => {
        const [, , group = '', version = ''] = subject.path().split('/');
        const { resources } = made(await place.api.get<{ resources: object[] }>(`/apis/${group}/${version}`));
        expect(resources).toContainEqual(
          expect.objectContaining({
            ...{ name: subject.plural, kind: subject.kind, namespaced: true },
            verbs: expect.arrayContaining(['create', 'delete', 'get', 'list', 'patch', 'update', 'watch']),
          }),
        );
        const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
        const documents = async () => (await place.api.get('/apis', { accept })).text;
        await expect
          .poll(documents)
          .toContain(`"responseKind":{"group":"${group}","version":"${version}","kind":"${subject.kind}"}`);
        await expect.poll(async () => (await place.api.get('/openapi/v3')).text).toContain(`apis/${group}/${version}`);
        const { text } = await place.api.get(`/openapi/v3/apis/${group}/${version}`);
        expect(text).toContain(`"kind":"${subject.kind}"`);
        await expect
          .poll(async () => (await place.api.get('/openapi/v2')).text)
          .toContain(`/apis/${group}/${version}/namespaces/{namespace}/${subject.plural}/{name}`);
      });
    });
  });
});
