import { describe, expect, test } from 'vitest';
import { configMap, failure, made, usePlace } from './support/place.ts';
import { useWidgets } from './support/widgets.ts';

const place = usePlace();
const TABLE = 'application/json;as=Table;g=meta.k8s.io;v=v1';
const path = (query = '') => `${place.path('configmaps')}${query}`;
const one = (name: string) => place.path('configmaps', name);
let counter = 0;

/** A label that only the objects of one test have. */
function topic(): { label: Record<string, string>; selector: string; name: (end: string) => string } {
  counter += 1;
  const value = `t${counter}`;
  return { label: { topic: value }, selector: `labelSelector=topic%3D${value}`, name: (end) => `${value}-${end}` };
}

async function versionNow(): Promise<string> {
  return made(await place.api.list(path())).metadata.resourceVersion;
}

describe('a watch', () => {
  test('sends every change, in the order of the versions', async () => {
    const { label, selector, name } = topic();
    using watch = await place.api.watch(path(`?${selector}&resourceVersion=${await versionNow()}`));
    made(await place.api.post(path(), configMap(name('a'), {}, { labels: label })));
    made(await place.api.patch(one(name('a')), { data: { x: '1' } }));
    made(await place.api.post(path(), configMap(name('b'), {}, { labels: label })));
    made(await place.api.delete(one(name('a'))));
    made(await place.api.delete(one(name('b'))));
    const events = [];
    for (let index = 0; index < 5; index += 1) events.push(await watch.change());
    expect(events.map(({ type, object }) => `${type} ${object.metadata.name.slice(-1)}`)).toEqual([
      ...['ADDED a', 'MODIFIED a', 'ADDED b', 'DELETED a', 'DELETED b'],
    ]);
    const versions = events.map(({ object }) => BigInt(object.metadata.resourceVersion));
    expect(versions).toEqual([...versions].sort((a, b) => (a < b ? -1 : 1)));
    expect(new Set(versions).size).toBe(5);
    expect(events[3]?.object).toMatchObject({ kind: 'ConfigMap', apiVersion: 'v1', data: { x: '1' } });
  });

  test('resumes from any version', async () => {
    const { label, selector, name } = topic();
    const start = await versionNow();
    const versions = [start];
    for (const end of ['a', 'b', 'c', 'd', 'e'])
      versions.push(
        made(await place.api.post(path(), configMap(name(end), {}, { labels: label }))).metadata.resourceVersion,
      );
    for (const [index, version] of versions.slice(0, -1).entries()) {
      using watch = await place.api.watch(path(`?${selector}&resourceVersion=${version}`));
      const expected = ['a', 'b', 'c', 'd', 'e'].slice(index).map((end) => `ADDED ${name(end)}`);
      expect(await watch.changes(expected.length)).toEqual(expected);
    }
  });

  test('without a version sends the present objects first', async () => {
    const { label, selector, name } = topic();
    for (const end of ['a', 'b']) made(await place.api.post(path(), configMap(name(end), {}, { labels: label })));
    for (const version of ['', '&resourceVersion=0']) {
      using watch = await place.api.watch(path(`?${selector}${version}`));
      expect((await watch.changes(2)).sort()).toEqual([`ADDED ${name('a')}`, `ADDED ${name('b')}`]);
    }
    using watch = await place.api.watch(path(`?${selector}`));
    await watch.changes(2);
    made(await place.api.patch(one(name('a')), { data: { x: 'y' } }));
    expect(await watch.changes(1)).toEqual([`MODIFIED ${name('a')}`]);
  });

  test('of objects with a label sends when one gets it and loses it', async () => {
    const { label, selector, name } = topic();
    made(await place.api.post(path(), configMap(name('a'), { x: '1' })));
    using watch = await place.api.watch(path(`?${selector}&resourceVersion=${await versionNow()}`));
    made(await place.api.patch(one(name('a')), { metadata: { labels: label } }));
    made(await place.api.patch(one(name('a')), { data: { x: '2' } }));
    const last = made(await place.api.patch(one(name('a')), { metadata: { labels: null }, data: { x: '3' } }));
    made(await place.api.patch(one(name('a')), { data: { x: '4' } }));
    made(await place.api.patch(one(name('a')), { metadata: { labels: label } }));
    const events = [];
    for (let index = 0; index < 4; index += 1) events.push(await watch.change());
    expect(events.map(({ type }) => type)).toEqual(['ADDED', 'MODIFIED', 'DELETED', 'ADDED']);
    // The event has its state when it was last selected, at the version at which it left.
    expect(events[2]?.object).toMatchObject({
      data: { x: '2' },
      metadata: { labels: label, resourceVersion: last.metadata.resourceVersion },
    });
  });

  test('of one object sends no other', async () => {
    const { name } = topic();
    const start = await versionNow();
    using watch = await place.api.watch(path(`?fieldSelector=metadata.name%3D${name('b')}&resourceVersion=${start}`));
    for (const end of ['a', 'b', 'c']) made(await place.api.post(path(), configMap(name(end))));
    made(await place.api.delete(one(name('b'))));
    expect(await watch.changes(2)).toEqual([`ADDED ${name('b')}`, `DELETED ${name('b')}`]);
  });

  test('of all namespaces sends objects of this one too', async () => {
    const { label, selector, name } = topic();
    using watch = await place.api.watch(`/api/v1/configmaps?${selector}&resourceVersion=${await versionNow()}`);
    made(await place.api.post(path(), configMap(name('a'), {}, { labels: label })));
    expect((await watch.change()).object.metadata.namespace).toBe(place.namespace);
  });

  test('ends after the timeout of the client', async () => {
    using watch = await place.api.watch(path(`?timeoutSeconds=1&resourceVersion=${await versionNow()}`));
    expect((await watch.rest()).filter(({ type }) => type === 'ERROR')).toEqual([]);
  });

  test('sends tables to clients that request them, with the columns once', async () => {
    const { label, selector, name } = topic();
    for (const end of ['a', 'b']) made(await place.api.post(path(), configMap(name(end), {}, { labels: label })));
    const response = await place.api.open('GET', path(`?watch=true&${selector}&timeoutSeconds=1`), {
      headers: { accept: TABLE },
    });
    let text = '';
    for await (const chunk of response) text += chunk;
    const tables = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).object);
    expect(tables).toMatchObject([
      { kind: 'Table', columnDefinitions: expect.arrayContaining([expect.objectContaining({ name: 'Name' })]) },
      { kind: 'Table', rows: [{ cells: expect.arrayContaining([name('b')]) }] },
    ]);
    expect(tables[1].columnDefinitions ?? []).toEqual([]);
  });
});

describe('a watch list', () => {
  const STREAM = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';

  test('sends the present objects, marks their end, and continues', async () => {
    const { label, selector, name } = topic();
    for (const end of ['a', 'b']) made(await place.api.post(path(), configMap(name(end), {}, { labels: label })));
    using watch = await place.api.watch(path(`?${selector}&${STREAM}`));
    expect((await watch.changes(2)).sort()).toEqual([`ADDED ${name('a')}`, `ADDED ${name('b')}`]);
    const mark = await watch.next();
    expect(mark).toMatchObject({
      type: 'BOOKMARK',
      object: {
        kind: 'ConfigMap',
        metadata: { annotations: { 'k8s.io/initial-events-end': 'true' }, resourceVersion: expect.stringMatching(/./) },
      },
    });
    made(await place.api.delete(one(name('a'))));
    expect(await watch.changes(1)).toEqual([`DELETED ${name('a')}`]);
    using resumed = await place.api.watch(
      path(`?${selector}&resourceVersion=${mark?.object.metadata.resourceVersion}`),
    );
    expect(await resumed.changes(1)).toEqual([`DELETED ${name('a')}`]);
  });

  test('of nothing is marked at once', async () => {
    const { selector } = topic();
    using watch = await place.api.watch(path(`?${selector}&${STREAM}`));
    expect(await watch.next()).toMatchObject({ type: 'BOOKMARK' });
  });

  test.each([
    'sendInitialEvents=true',
    'resourceVersionMatch=NotOlderThan',
    'sendInitialEvents=true&resourceVersionMatch=Exact',
  ])('%s alone is refused', async (query) => {
    expect(await place.api.get(path(`?watch=true&${query}`))).toEqual(failure(422, 'Invalid'));
  });
});

describe('versions', () => {
  test('an old version ends in Expired, or gets all changes since', async () => {
    // Something that happened since.
    made(await place.api.post(path(), configMap(topic().name('a'))));
    using watch = await place.api.watch(path('?resourceVersion=1'));
    const first = await watch.next();
    if (first?.type === 'ERROR') expect(first.object).toMatchObject({ kind: 'Status', code: 410, reason: 'Expired' });
    else expect(first?.type).toBe('ADDED');
  });

  test('what is no version is refused, before the watch or as its first word', async () => {
    const answer = await place.api.get<unknown>(path('?watch=true&resourceVersion=abc&timeoutSeconds=5'));
    const status = answer.status === 200 ? JSON.parse(answer.text.split('\n', 1)[0] ?? '').object : answer.body;
    // kube-apiserver responds with 500.
    const code = expect.toSatisfy((code) => [400, 410, 422, 500].includes(code));
    expect(status).toMatchObject({ kind: 'Status', status: 'Failure', code });
  });

  test('an invalid selector is refused before anything is sent', async () => {
    expect(await place.api.get(path('?watch=true&labelSelector=a%3Db%3Dc'))).toEqual(failure(400, 'BadRequest'));
    expect(await place.api.get(path('?watch=true&fieldSelector=data.x%3Db'))).toEqual(failure(400, 'BadRequest'));
  });
});

describe('objects of defined kinds', () => {
  const widgets = useWidgets(place);

  test('are watched by their fields', async () => {
    const { metadata } = made(await place.api.list(widgets.path()));
    using watch = await place.api.watch(
      `${widgets.path()}?fieldSelector=spec.color%3Dred&resourceVersion=${metadata.resourceVersion}`,
    );
    for (const [name, color] of Object.entries({ a: 'red', b: 'blue' }))
      made(await place.api.post(widgets.path(), widgets.body(name, { color })));
    for (const name of ['a', 'b'])
      made(await place.api.patch(widgets.path(name), { spec: { color: name === 'a' ? 'green' : 'red' } }));
    expect(await watch.changes(3)).toEqual(['ADDED a', 'DELETED a', 'ADDED b']);
  });
});
