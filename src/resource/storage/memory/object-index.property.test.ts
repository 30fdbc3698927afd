import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { ManualClock } from '../../../foundation/time/manual-clock.ts';
import type { RequestContext } from '../../object/request-context.ts';
import { type Widget, widgetKind } from '../../schema/testing.ts';
import { fieldSelector } from '../../selector/field-selector.ts';
import { labelSelector } from '../../selector/label-selector.ts';
import { EventLog } from '../../watch/event-log.ts';
import type { ListOptions, WatchEvent } from '../storage.ts';
import { MemoryStorage } from './memory-storage.ts';
import { ObjectIndex } from './object-index.ts';

const context: RequestContext = { actor: { name: 'test' }, face: 'api' };

test('an index equals a plain map for every order of additions and removals', () => {
  const key = fc.record({ namespace: fc.constantFrom('a', 'a-b', 'b'), name: fc.constantFrom('x', 'x-y', 'z') });
  const step = fc.record({
    key,
    remove: fc.boolean(),
    tags: fc.uniqueArray(fc.constantFrom('t1', 't2', 't3')),
    check: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const index = new ObjectIndex<{ id: string; tags: readonly string[] }>(({ tags }) => tags);
      const ids = (key?: string) => index.select(key).map(({ id }) => id);
      const model = new Map<string, { id: string; tags: readonly string[] }>();
      const wanted = (tag?: string, namespace = '') =>
        [...model.values()]
          .filter(({ id, tags }) => (tag === undefined || tags.includes(tag)) && id.startsWith(namespace))
          .map(({ id }) => id)
          .sort(([...a], [...b]) => (a.join('').replace('/', '\0') < b.join('').replace('/', '\0') ? -1 : 1));
      for (const { key: where, remove, tags, check } of steps) {
        const id = `${where.namespace}/${where.name}`;
        if (remove) {
          index.delete(where);
          model.delete(id);
        } else {
          index.set(where, { id, tags });
          model.set(id, { id, tags });
        }
        // Looking makes the order known, which later writes then have to keep.
        if (check) expect(ids()).toEqual(wanted());
      }
      expect(ids()).toEqual(wanted());
      for (const tag of ['t1', 't2', 't3', 't4']) expect(ids(tag)).toEqual(wanted(tag));
      for (const namespace of ['a', 'a-b', 'b', 'c'])
        expect(ids(`namespace:${namespace}`)).toEqual(wanted(undefined, `${namespace}/`));
      for (const name of ['x', 'x-y', 'z', 'y'])
        expect(ids(`name:${name}`)).toEqual(wanted().filter((id) => id.endsWith(`/${name}`)));
      expect(index.size).toBe(model.size);
    }),
    { numRuns: runs(100) },
  );
});

function setUp() {
  const clock = new ManualClock();
  const log = new EventLog({ clock });
  const storage = new MemoryStorage(widgetKind, { clock, log });
  const create = (name: string, labels: Record<string, string> = {}, namespace = 'default') =>
    storage.create(context, widgetKind.complete({ metadata: { name, namespace, labels }, spec: {} }));
  return { clock, log, storage, create };
}

test('pages are of one snapshot, independent of writes between them', async () => {
  const { storage, create } = setUp();
  for (let index = 0; index < 10; index += 1) await create(`w${index}`);
  const names: string[] = [];
  let options: ListOptions = { limit: 3 };
  const versions = new Set<string>();
  for (let page = 0; ; page += 1) {
    const result = await storage.list(context, options);
    names.push(...result.items.map((item) => item.metadata.name));
    versions.add(result.resourceVersion);
    expect(result.remainingItemCount).toBe(result.continue === undefined ? undefined : 10 - names.length);
    if (result.continue === undefined) break;
    await storage.delete(context, { namespace: 'default', name: `w${9 - page}` });
    await create(`a${page}`);
    options = { limit: 3, continue: result.continue };
  }
  expect(names).toEqual(Array.from({ length: 10 }, (_, index) => `w${index}`));
  expect(versions.size).toBe(1);
});

test('pages hold only what is selected, and a full last page is not followed by an empty one', async () => {
  const { storage, create } = setUp();
  for (let index = 0; index < 8; index += 1) await create(`w${index}`, { odd: String(index % 2 === 1) });
  const selection = { labelSelector: labelSelector('odd!=false'), limit: 2 };
  const first = await storage.list(context, selection);
  const second = await storage.list(context, { ...selection, continue: first.continue });
  expect([...first.items, ...second.items].map((item) => item.metadata.name)).toEqual(['w1', 'w3', 'w5', 'w7']);
  expect(first.continue).toBeDefined();
  expect(second.continue).toBeUndefined();
});

test('the rest of a list that is too old, of another process or no token at all is recognised', async () => {
  const { clock, storage, create } = setUp();
  for (let index = 0; index < 3; index += 1) await create(`w${index}`);
  const { continue: token } = await storage.list(context, { limit: 1 });
  const other = setUp();
  await expect(other.storage.list(context, { limit: 1, continue: token })).rejects.toMatchObject({ code: 'Expired' });
  await expect(storage.list(context, { continue: 'nonsense' })).rejects.toMatchObject({ code: 'BadRequest' });
  clock.advance(10 * 60_000);
  await expect(storage.list(context, { limit: 1, continue: token })).rejects.toMatchObject({ code: 'Expired' });
});

test('a list by name, label, field and namespace equals a full scan', async () => {
  const { storage, create } = setUp();
  for (const namespace of ['default', 'other'])
    for (let index = 0; index < 5; index += 1) await create(`w${index}`, { n: String(index) }, namespace);
  const count = async (options: ListOptions) => (await storage.list(context, options)).items.length;
  expect(await count({ fieldSelector: fieldSelector('metadata.name=w1') })).toBe(2);
  expect(await count({ fieldSelector: fieldSelector('metadata.name=w1,metadata.namespace=other') })).toBe(1);
  expect(await count({ labelSelector: labelSelector('n=3'), namespace: 'other' })).toBe(1);
  expect(await count({ labelSelector: labelSelector('n in (3,4)') })).toBe(4);
  expect(await count({ fieldSelector: fieldSelector('spec.size=1') })).toBe(10);
  expect(await count({ fieldSelector: fieldSelector('spec.size!=1') })).toBe(0);
  expect(await count({ namespace: 'other' })).toBe(5);
});

test('a watcher with a selector gets exactly the matching events of a watcher of all', async () => {
  const selections: Partial<ListOptions>[] = [
    {},
    { namespace: 'other' },
    { labelSelector: labelSelector('tier=front') },
    { labelSelector: labelSelector('tier=front,app') },
    { fieldSelector: fieldSelector('metadata.name=w1') },
    { fieldSelector: fieldSelector('spec.size=2') },
    { labelSelector: labelSelector('tier!=front') },
  ];
  const step = fc.record({
    namespace: fc.constantFrom('default', 'other'),
    name: fc.constantFrom('w1', 'w2'),
    size: fc.constantFrom(1, 2),
    labels: fc.constantFrom({}, { tier: 'front' }, { tier: 'back' }, { tier: 'front', app: 'x' }),
    remove: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 20 }), async (steps) => {
      const { log, storage } = setUp();
      const watchers = selections.map((selection) => {
        const live: WatchEvent<Widget>[] = [];
        const end = new AbortController();
        const watch = storage.watch(context, { ...selection, resourceVersion: '0', signal: end.signal });
        const running = (async () => {
          for await (const event of watch) live.push(event);
        })();
        return { selection, live, running };
      });
      await Promise.resolve();
      for (const { namespace, name, size, labels, remove } of steps) {
        const key = { namespace, name };
        const object = widgetKind.complete({ metadata: { ...key, labels }, spec: { size } });
        const known = (await storage.list(context, key)).items.some((item) => item.metadata.name === name);
        if (remove && known) await storage.delete(context, key);
        else if (known) await storage.update(context, object);
        else await storage.create(context, object);
      }
      await new Promise((resolve) => setImmediate(resolve));
      log.close();
      for (const { selection, live, running } of watchers) {
        await running;
        // From a log that is not closed, the same changes are read from the past.
        const state = new Map<string, Widget>();
        for (const event of live) {
          if (event.type === 'BOOKMARK') continue;
          const id = `${event.object.metadata.namespace}/${event.object.metadata.name}`;
          expect(state.has(id)).toBe(event.type !== 'ADDED');
          if (event.type === 'DELETED') state.delete(id);
          else state.set(id, event.object);
        }
        const { items } = await storage.list(context, selection);
        expect(new Set(state.values())).toEqual(new Set(items));
      }
    }),
    { numRuns: runs(60) },
  );
});
