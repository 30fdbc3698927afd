import { describe, expect, test } from 'vitest';
import { beforeAllServed, configMap, failure, made, usePlace } from './support/place.ts';
import { useWidgets } from './support/widgets.ts';

const place = usePlace();
const path = (query = '') => `${place.path('configmaps')}${query}`;
const MINE = 'labelSelector=listed';

beforeAllServed(async () => {
  for (const [name, labels] of Object.entries({
    a: { listed: 'yes', tier: 'front', size: 's' },
    b: { listed: 'yes', tier: 'back' },
    c: { listed: 'yes', tier: 'back', size: 'l' },
    d: { listed: 'yes' },
    e: { listed: '' },
  }))
    made(await place.api.post(path(), configMap(name, {}, { labels })));
});

async function names(query: string): Promise<string[]> {
  return made(await place.api.list(path(`?${query}`))).items.map(({ metadata }) => metadata.name);
}

describe('selectors', () => {
  test.each([
    ['tier=back', 'b c'],
    ['tier==back', 'b c'],
    ['listed,tier!=back', 'a d e'],
    ['tier in (front, back)', 'a b c'],
    ['listed,tier notin (front)', 'b c d e'],
    ['tier', 'a b c'],
    ['listed,!tier', 'd e'],
    ['tier=back,size', 'c'],
    ['listed=', 'e'],
    ['listed in (,yes),size', 'a c'],
    ['tier=none', ''],
  ])('%s', async (selector, expected) => {
    expect(await names(`labelSelector=${encodeURIComponent(selector)}`)).toEqual(expected.split(' ').filter(Boolean));
  });

  test.each(['a=b=c', 'a in b', '=a', '!', 'a in (', 'tier=-back-', 'a b'])('%s is none', async (selector) => {
    const answer = await place.api.get(path(`?labelSelector=${encodeURIComponent(selector)}`));
    expect(answer).toEqual(failure(400, 'BadRequest'));
  });

  test('of fields', async () => {
    expect(await names('fieldSelector=metadata.name%3Da')).toEqual(['a']);
    expect(await names(`${MINE}&fieldSelector=metadata.name!%3Da`)).toEqual(['b', 'c', 'd', 'e']);
    expect(await names(`${MINE}&fieldSelector=metadata.namespace%3D${place.namespace}`)).toHaveLength(5);
    expect(await names('fieldSelector=metadata.name%3Da,metadata.name%3Db')).toEqual([]);
    expect(await place.api.get(path('?fieldSelector=data.a%3Db'))).toEqual(failure(400, 'BadRequest'));
    expect(await place.api.get(path('?fieldSelector=metadata.name'))).toEqual(failure(400, 'BadRequest'));
    made(await place.api.post(place.path('secrets'), { metadata: { name: 's' }, type: 'example.com/t' }));
    const secrets = made(await place.api.list(`${place.path('secrets')}?fieldSelector=type%3Dexample.com/t`));
    expect(secrets.items.map(({ metadata }) => metadata.name)).toEqual(['s']);
  });

  describe('of fields of defined kinds', () => {
    const widgets = useWidgets(place);

    test('know those that the definition names', async () => {
      for (const [name, color] of [
        ['x', 'red'],
        ['y', 'blue'],
      ])
        made(await place.api.post(widgets.path(), widgets.body(name ?? '', { color })));
      const red = made(await place.api.list(`${widgets.path()}?fieldSelector=spec.color%3Dred`));
      expect(red.items.map(({ metadata }) => metadata.name)).toEqual(['x']);
      expect(await place.api.get(`${widgets.path()}?fieldSelector=spec.size%3D1`)).toEqual(failure(400, 'BadRequest'));
    });
  });
});

describe('pages', () => {
  const ALL = ['a', 'b', 'c', 'd', 'e'];

  test('together are the list', async () => {
    const seen: string[] = [];
    let token = '';
    let pages = 0;
    do {
      const page = made(await place.api.list(path(`?${MINE}&limit=2&continue=${encodeURIComponent(token)}`)));
      seen.push(...page.items.map(({ metadata }) => metadata.name));
      token = page.metadata.continue ?? '';
      pages += 1;
    } while (token !== '');
    expect(seen).toEqual(ALL);
    expect(pages).toBe(3);
  });

  test('report how many objects remain, unless there is a selector', async () => {
    const total = made(await place.api.list(path())).items.length;
    expect(made(await place.api.list(path('?limit=2'))).metadata.remainingItemCount).toBe(total - 2);
    expect(made(await place.api.list(path('?limit=1000'))).metadata).not.toHaveProperty('remainingItemCount');
    expect(made(await place.api.list(path(`?${MINE}&limit=2`))).metadata).not.toHaveProperty('remainingItemCount');
  });

  test('show the snapshot of the first one', async () => {
    const first = made(await place.api.list(path(`?${MINE}&limit=2`)));
    const created = await place.api.post(path(), configMap('c-later', {}, { labels: { listed: 'yes' } }));
    made(created);
    made(await place.api.delete(place.path('configmaps', 'd')));
    made(await place.api.patch(place.path('configmaps', 'e'), { data: { changed: 'yes' } }));
    const rest = made(
      await place.api.list(path(`?${MINE}&limit=10&continue=${encodeURIComponent(first.metadata.continue ?? '')}`)),
    );
    expect([...first.items, ...rest.items].map(({ metadata }) => metadata.name)).toEqual(ALL);
    expect(rest.items.at(-1)).not.toHaveProperty('data.changed');
    expect(rest.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
    made(await place.api.delete(place.path('configmaps', 'c-later')));
    made(await place.api.post(path(), configMap('d', {}, { labels: { listed: 'yes' } })));
  });

  test('are continued by what the server gave, and nothing else', async () => {
    for (const token of ['nonsense', 'e30', '%00', 'eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi8uLi8ifQ']) {
      const answer = await place.api.get(path(`?limit=2&continue=${token}`));
      expect(answer.body, token).toMatchObject({
        kind: 'Status',
        code: expect.toSatisfy((code) => [400, 410].includes(code as number)),
      });
    }
    const { metadata } = made(await place.api.list(path('?limit=2')));
    const more = `limit=2&continue=${encodeURIComponent(metadata.continue ?? '')}&resourceVersion=5`;
    expect((await place.api.get(path(`?${more}`))).status).toBe(400);
  });
});

describe('versions', () => {
  test('a list contains the version from which a watch resumes', async () => {
    const { metadata } = made(await place.api.list(path()));
    expect(metadata.resourceVersion).toMatch(/./);
    const again = made(await place.api.list(path(`?resourceVersion=${metadata.resourceVersion}`)));
    expect(again.items.length).toBeGreaterThanOrEqual(5);
  });

  test('a list may be as old as the client allows, and not older', async () => {
    const { metadata } = made(await place.api.list(path()));
    const version = metadata.resourceVersion;
    for (const query of ['resourceVersion=0', `resourceVersion=${version}&resourceVersionMatch=NotOlderThan`])
      expect(made(await place.api.list(path(`?${query}`))).items.length).toBeGreaterThanOrEqual(5);
    const exact = await place.api.list(path(`?resourceVersion=${version}&resourceVersionMatch=Exact`));
    // A server need not keep old states.
    if (exact.status !== 410) expect(made(exact).metadata.resourceVersion).toBe(version);
    const future = `${BigInt(version) + 1_000_000n}`;
    const ahead = await place.api.get(path(`?resourceVersion=${future}&resourceVersionMatch=NotOlderThan`));
    expect(ahead).toEqual(failure(504, 'Timeout', { message: expect.stringContaining('Too large resource version') }));
  });

  test.each([
    'resourceVersionMatch=Exact',
    'resourceVersion=0&resourceVersionMatch=Exact',
    'resourceVersion=1&resourceVersionMatch=Other',
    'sendInitialEvents=true',
  ])('%s is refused', async (query) => {
    expect(await place.api.get(path(`?${query}`))).toEqual(failure(422, 'Invalid'));
  });
});
