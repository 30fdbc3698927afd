import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type KubernetesObject, keyOf, type ObjectMeta, type Stored } from '../object/object.ts';
import type { RequestContext } from '../object/request-context.ts';
import { fieldSelector } from '../selector/field-selector.ts';
import { labelSelector } from '../selector/label-selector.ts';
import {
  FOREGROUND_FINALIZER,
  type ListResult,
  ORPHAN_FINALIZER,
  type Storage,
  type WatchEvent,
  type WatchOptions,
} from './storage.ts';

/** One empty storage under test, and objects that it takes. What is optional is not tested where it is absent. */
export interface StorageSubject<T extends KubernetesObject> {
  readonly storage: Storage<T>;
  /** A valid object in the namespace `default` that is not stored; another `index` gives another key. No finalizers. */
  sample(index: number): T;
  /** A copy whose spec differs in a way that update accepts, again and again. */
  changeSpec(object: Stored<T>): T;
  /** A copy whose status differs, if the kind has one that clients write. */
  changeStatus?(object: Stored<T>): T;
  /** Makes enough changes that a watch from before them is Expired. */
  overflow?(): Promise<void>;
  /** Brings an object into a state in which it may be deleted. */
  beforeDelete?(object: Stored<T>): Promise<void>;
  close?(): Promise<void>;
}

export interface StorageTraits {
  /** Objects may carry finalizers. */
  readonly finalizers: boolean;
  /** Events of an open watch wait between the server and this process, so that a reader that pauses does not fall behind soon. */
  readonly remote?: boolean;
}

const context: RequestContext = { actor: { name: 'conformance' }, face: 'api' };

/** Tests an implementation of the Storage port. Call it at the top of a test file. */
export function describeStorage<T extends KubernetesObject>(
  name: string,
  traits: StorageTraits,
  open: () => Promise<StorageSubject<T>>,
): void {
  describe(`${name} keeps the contract of Storage`, () => {
    let subject: StorageSubject<T>;
    let storage: Storage<T>;
    const ends: AbortController[] = [];

    beforeEach(async () => {
      subject = await open();
      storage = subject.storage;
    });
    afterEach(async () => {
      for (const end of ends.splice(0)) end.abort();
      await subject.close?.();
    });

    const create = (index: number, metadata: Partial<ObjectMeta> = {}) =>
      storage.create(context, withMeta(subject.sample(index), metadata));
    const get = (object: KubernetesObject) => storage.get(context, keyOf(object));

    function watch(from: string, selection: Partial<WatchOptions> = {}): Watcher<T> {
      const end = new AbortController();
      ends.push(end);
      return new Watcher(storage.watch(context, { ...selection, resourceVersion: from, signal: end.signal }), end);
    }

    test('create returns what get returns, with the metadata that the storage sets', async () => {
      const given = subject.sample(1);
      const made = await storage.create(context, withMeta(given, { labels: { tier: 'front' } }));
      expect(made.metadata.uid).not.toBe('');
      expect(made.metadata.resourceVersion).not.toBe('');
      expect(made.metadata.creationTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      expect(made.metadata.deletionTimestamp).toBeUndefined();
      expect(made.metadata.labels).toMatchObject({ tier: 'front' });
      expect(made.apiVersion).toBe(storage.kind.apiVersion);
      expect(await get(made)).toEqual(made);
    });

    test('what is read is deeply frozen', async () => {
      const made = await create(1, { labels: { a: 'b' } });
      const { items } = await storage.list(context);
      for (const object of [made, await get(made), ...items]) expectFrozen(object);
    });

    test('later changes of an argument have no effect', async () => {
      const labels = { a: 'b' };
      const made = await create(1, { labels });
      labels.a = 'changed';
      expect((await get(made)).metadata.labels?.a).toBe('b');
    });

    test('create refuses a taken key', async () => {
      await create(1);
      await expect(create(1)).rejects.toMatchObject({ code: 'AlreadyExists' });
    });

    test('get, update and delete of a missing object are NotFound', async () => {
      const made = await create(1);
      await subject.beforeDelete?.(made);
      await storage.delete(context, keyOf(made));
      await expect(get(made)).rejects.toMatchObject({ code: 'NotFound' });
      const { resourceVersion: _version, uid: _uid, ...metadata } = made.metadata;
      await expect(storage.update(context, { ...made, metadata })).rejects.toMatchObject({ code: 'NotFound' });
      await expect(storage.delete(context, keyOf(made))).rejects.toMatchObject({ code: 'NotFound' });
      await expect(get({ ...made, metadata: { ...metadata, namespace: 'elsewhere' } })).rejects.toMatchObject({
        code: 'NotFound',
      });
    });

    test('list is sorted, consistent with get, and follows the selection', async () => {
      const made = [await create(2, { labels: { tier: 'back' } }), await create(1, { labels: { tier: 'front' } })];
      const all = await storage.list(context);
      const names = all.items.map((item) => item.metadata.name);
      expect(names).toEqual(made.map((object) => object.metadata.name).sort());
      for (const item of all.items) expect(await get(item)).toEqual(item);
      const labelled = await storage.list(context, { labelSelector: labelSelector('tier=front') });
      expect(labelled.items.map((item) => item.metadata.name)).toEqual([made[1]?.metadata.name]);
      const named = await storage.list(context, { fieldSelector: fieldSelector(`metadata.name=${names[0]}`) });
      expect(named.items.map((item) => item.metadata.name)).toEqual([names[0]]);
      expect((await storage.list(context, { namespace: 'elsewhere' })).items).toEqual([]);
      expect((await storage.list(context, { namespace: 'default' })).items).toHaveLength(2);
    });

    test('pages are of one state, and together the whole list', async () => {
      for (const index of [1, 2, 3, 4, 5]) await create(index);
      const whole = await storage.list(context, { namespace: 'default' });
      const paged: Stored<T>[] = [];
      let token: string | undefined;
      do {
        const page = await storage.list(context, { namespace: 'default', limit: 2, continue: token });
        expect(page.items.length).toBeLessThanOrEqual(2);
        expect(page.resourceVersion).toBe(whole.resourceVersion);
        for (const item of page.items) expectFrozen(item);
        // What is created meanwhile is no part of it.
        if (token === undefined) await create(6);
        paged.push(...page.items);
        token = page.continue;
        if (page.remainingItemCount !== undefined) expect(page.remainingItemCount).toBe(5 - paged.length);
      } while (token !== undefined);
      expect(paged).toEqual(whole.items);
      expect((await storage.list(context)).items).toHaveLength(6);
    });

    test('a dry run returns what would be stored, and stores nothing', async () => {
      const dry = { ...context, dryRun: true };
      const planned = await storage.create(dry, subject.sample(1));
      expect(planned.metadata).toMatchObject({ namespace: 'default' });
      await expect(get(planned)).rejects.toMatchObject({ code: 'NotFound' });
      const made = await create(1);
      const changed = await storage.update(dry, subject.changeSpec(made));
      expect(changed.spec).not.toEqual(made.spec);
      expect(await get(made)).toEqual(made);
    });

    test('an unknown field in a selector is refused', async () => {
      const selection = { fieldSelector: fieldSelector('spec.no-such-field=1') };
      await expect(storage.list(context, selection)).rejects.toMatchObject({ code: 'BadRequest' });
    });

    test('update changes the spec and the version; a spec change raises the generation by one', async () => {
      const made = await create(1);
      const changed = await storage.update(context, subject.changeSpec(made));
      expect(changed.spec).not.toEqual(made.spec);
      expect(changed.metadata.uid).toBe(made.metadata.uid);
      expect(changed.metadata.creationTimestamp).toBe(made.metadata.creationTimestamp);
      expect(changed.metadata.resourceVersion).not.toBe(made.metadata.resourceVersion);
      expect(await get(made)).toEqual(changed);
      if (made.metadata.generation !== undefined)
        expect(changed.metadata.generation).toBe(made.metadata.generation + 1);
      const labelled = await storage.update(context, withMeta(changed, { labels: { new: 'label' } }));
      expect(labelled.metadata.labels).toMatchObject({ new: 'label' });
      expect(labelled.metadata.generation).toBe(changed.metadata.generation);
      expect(labelled.metadata.resourceVersion).not.toBe(changed.metadata.resourceVersion);
    });

    test('update with an old version or a foreign uid is a Conflict and changes nothing', async () => {
      const made = await create(1);
      const changed = await storage.update(context, subject.changeSpec(made));
      await expect(storage.update(context, subject.changeSpec(made))).rejects.toMatchObject({ code: 'Conflict' });
      const foreign = withMeta(subject.changeSpec(changed), { uid: '00000000-0000-4000-8000-000000000000' });
      await expect(storage.update(context, foreign)).rejects.toMatchObject({ code: 'Conflict' });
      expect(await get(made)).toEqual(changed);
    });

    test('update without a version wins over what was there', async () => {
      const made = await create(1);
      await storage.update(context, withMeta(made, { labels: { first: 'x' } }));
      const blind = withMeta(subject.changeSpec(made), { resourceVersion: undefined, labels: { second: 'x' } });
      const result = await storage.update(context, blind);
      expect(result.metadata.labels).toMatchObject({ second: 'x' });
      expect(result.metadata.labels).not.toHaveProperty('first');
    });

    test('of two updates of one version one wins', async () => {
      const made = await create(1);
      const results = await Promise.allSettled(
        [1, 2].map((n) => storage.update(context, withMeta(made, { labels: { n: `${n}` } }))),
      );
      expect(results.filter((result) => result.status === 'fulfilled')).toHaveLength(1);
      const lost = results.find((result) => result.status === 'rejected');
      expect(['Conflict', 'Busy']).toContain(lost?.reason.code);
    });

    test('an update that changes nothing makes no event and no version', async () => {
      const made = await create(1, { labels: { a: 'b' } });
      const watcher = watch(made.metadata.resourceVersion);
      const again = await storage.update(context, made);
      expect(again).toEqual(made);
      const changed = await storage.update(context, subject.changeSpec(made));
      expect(await watcher.next()).toEqual({ type: 'MODIFIED', object: changed });
    });

    test('status and the rest are written apart', async () => {
      if (subject.changeStatus === undefined) return;
      expect(storage.subResources).toContain('status');
      const made = await create(1);
      const wanted = subject.changeStatus(made);
      const ignored = await storage.update(context, wanted);
      expect(ignored.status).toEqual(made.status);
      const both = subject.changeStatus(subject.changeSpec(made) as Stored<T>);
      const written = await storage.updateSubResource(context, 'status', both);
      expect(written.status).toMatchObject(wanted.status as object);
      expect(written.spec).toEqual(made.spec);
      expect(written.metadata.generation).toBe(made.metadata.generation);
      const stale = storage.updateSubResource(context, 'status', made);
      await expect(stale).rejects.toMatchObject({ code: 'Conflict' });
    });

    test('a status without a version wins, unless it is for another object', async () => {
      if (subject.changeStatus === undefined) return;
      const made = await create(1);
      await storage.update(context, withMeta(made, { labels: { later: 'x' } }));
      const blind = withMeta(subject.changeStatus(made), { resourceVersion: undefined });
      const written = await storage.updateSubResource(context, 'status', blind);
      expect(written.status).toMatchObject(subject.changeStatus(made).status as object);
      expect(written.metadata.labels).toMatchObject({ later: 'x' });
      const foreign = withMeta(blind, { uid: '00000000-0000-4000-8000-000000000000' });
      const refused = storage.updateSubResource(context, 'status', foreign);
      await expect(refused).rejects.toMatchObject({ code: 'Conflict' });
    });

    test('a merge patch changes the named fields, in one step', async () => {
      if (storage.patch === undefined) return;
      const made = await create(1, { labels: { a: 'x', b: 'x' } });
      const patched = await storage.patch(context, keyOf(made), { metadata: { labels: { a: null, c: 'x' } } });
      expect(patched.metadata.labels).toEqual({ b: 'x', c: 'x' });
      expect(await get(made)).toEqual(patched);
      const stale = { metadata: { resourceVersion: made.metadata.resourceVersion, labels: { d: 'x' } } };
      await expect(storage.patch(context, keyOf(made), stale)).rejects.toMatchObject({ code: 'Conflict' });
      await expect(storage.patch(context, { ...keyOf(made), name: 'other' }, stale)).rejects.toMatchObject({
        code: 'NotFound',
      });
      if (subject.changeStatus === undefined) return;
      const { status } = subject.changeStatus(patched);
      const unchanged = await storage.patch(context, keyOf(made), { status });
      expect(unchanged.metadata.resourceVersion).toBe(patched.metadata.resourceVersion);
      const written = await storage.patch(context, keyOf(made), { status }, 'status');
      expect(written.status).toMatchObject(status as object);
    });

    test('server-side apply creates, owns its fields, and needs force for those of others', async () => {
      if (storage.apply === undefined) return;
      const { apiVersion, kind, ...sample } = subject.sample(1);
      const { name, namespace } = sample.metadata;
      const labelled = (labels: object) => ({ ...sample, apiVersion, kind, metadata: { name, namespace, labels } });
      const first = await storage.apply(context, labelled({ a: '1', b: '1' }), { manager: 'one' });
      expect(first.metadata.labels).toEqual({ a: '1', b: '1' });
      expect(await storage.apply(context, labelled({ a: '1', b: '1' }), { manager: 'one' })).toEqual(first);
      const only = { apiVersion, kind, metadata: { name, namespace, labels: { a: '2' } } };
      const call = storage.apply(context, only, { manager: 'two' });
      await expect(call).rejects.toMatchObject({ code: 'Conflict' });
      const forced = await storage.apply(context, only, { manager: 'two', force: true });
      expect(forced.metadata.labels).toEqual({ a: '2', b: '1' });
      const fewer = await storage.apply(context, labelled({}), { manager: 'one' });
      expect(fewer.metadata.labels).toEqual({ a: '2' });
    });

    test('a sub-resource that does not exist is Unsupported', async () => {
      const made = await create(1);
      const call = storage.updateSubResource(context, 'no-such-thing', made);
      await expect(call).rejects.toMatchObject({ code: 'Unsupported' });
    });

    test('delete keeps its preconditions', async () => {
      const made = await create(1);
      await subject.beforeDelete?.(made);
      const now = await get(made);
      for (const options of [{ uid: 'other' }, { resourceVersion: 'other' }])
        await expect(storage.delete(context, keyOf(made), options)).rejects.toMatchObject({ code: 'Conflict' });
      expect(await get(made)).toEqual(now);
      const { uid, resourceVersion } = now.metadata;
      const removed = await storage.delete(context, keyOf(made), { uid, resourceVersion });
      expect(removed.metadata.uid).toBe(uid);
      expect((await storage.list(context)).items).toEqual([]);
    });

    test('watch from a list returns every change after it, in order, each once', async () => {
      const before = await create(1);
      const { resourceVersion } = await storage.list(context);
      const second = await create(2);
      const changed = await storage.update(context, subject.changeSpec(before));
      const watcher = watch(resourceVersion);
      expect(await watcher.next()).toEqual({ type: 'ADDED', object: second });
      expect(await watcher.next()).toEqual({ type: 'MODIFIED', object: changed });
      const labelled = await storage.update(context, withMeta(second, { labels: { live: 'yes' } }));
      expect(await watcher.next()).toEqual({ type: 'MODIFIED', object: labelled });
    });

    test('a deleted object is reported with its last state and a version of its own', async () => {
      const made = await create(1);
      await subject.beforeDelete?.(made);
      const last = await get(made);
      const { resourceVersion } = await storage.list(context);
      await storage.delete(context, keyOf(made));
      const event = await watch(resourceVersion).next();
      expect(event).toMatchObject({ type: 'DELETED', object: { metadata: { name: made.metadata.name } } });
      if (event.type === 'BOOKMARK') throw new Error('a bookmark is no deletion');
      expect(event.object.spec).toEqual(last.spec);
      expect(event.object.metadata.resourceVersion).not.toBe(last.metadata.resourceVersion);
    });

    test('entering and leaving a selection is ADDED and DELETED', async () => {
      const made = await create(1, { labels: { tier: 'back' } });
      const watcher = watch(made.metadata.resourceVersion, { labelSelector: labelSelector('tier=front') });
      const front = await storage.update(context, withMeta(made, { labels: { tier: 'front' } }));
      expect(await watcher.next()).toEqual({ type: 'ADDED', object: front });
      const back = await storage.update(context, withMeta(front, { labels: { tier: 'back' } }));
      const left = await watcher.next();
      expect(left).toMatchObject({ type: 'DELETED', object: { metadata: { labels: { tier: 'front' } } } });
      if (left.type !== 'BOOKMARK') expect(left.object.metadata.resourceVersion).toBe(back.metadata.resourceVersion);
    });

    test('a watcher that does not read delays no other', async () => {
      const made = await create(1);
      const idle = watch(made.metadata.resourceVersion);
      let current = made;
      for (let round = 0; round < 5; round += 1) current = await storage.update(context, subject.changeSpec(current));
      const seen: string[] = [];
      for (let round = 0; round < 5; round += 1) seen.push(versionOf(await idle.next()));
      expect(seen.at(-1)).toBe(current.metadata.resourceVersion);
      expect(new Set(seen).size).toBe(5);
    });

    test('an aborted watch ends quietly, also while it waits', async () => {
      const { resourceVersion } = await storage.list(context);
      const watcher = watch(resourceVersion);
      const pending = watcher.raw();
      watcher.end.abort();
      expect(await pending).toMatchObject({ done: true });
      const late = watch(resourceVersion);
      late.end.abort();
      expect(await late.raw()).toMatchObject({ done: true });
    });

    test('a version that the storage never gave is Expired', async () => {
      await expect(watch('no-such-version').next()).rejects.toMatchObject({ code: 'Expired' });
    });

    test('a watcher that falls behind is Expired and can list again', async () => {
      if (subject.overflow === undefined) return;
      const { resourceVersion } = await storage.list(context);
      const begun = watch(resourceVersion);
      const first = await create(901);
      expect(await begun.next()).toEqual({ type: 'ADDED', object: first });
      await subject.overflow();
      if (traits.remote !== true) await expect(begun.next()).rejects.toMatchObject({ code: 'Expired' });
      await expect(watch(resourceVersion).next()).rejects.toMatchObject({ code: 'Expired' });
      const fresh: ListResult<T> = await storage.list(context);
      const made = await create(900);
      expect(await watch(fresh.resourceVersion).next()).toEqual({ type: 'ADDED', object: made });
    });

    if (!traits.finalizers) return;

    test.each([
      ['Foreground', FOREGROUND_FINALIZER],
      ['Orphan', ORPHAN_FINALIZER],
    ] as const)(
      'a deletion with the policy %s waits for the garbage collector',
      async (propagationPolicy, finalizer) => {
        const made = await create(1, { finalizers: ['example.org/hold'] });
        await subject.beforeDelete?.(made);
        const marked = await storage.delete(context, keyOf(made), { propagationPolicy });
        expect(marked.metadata.deletionTimestamp).toBeDefined();
        expect(marked.metadata.finalizers).toContain(finalizer);
        expect(marked.metadata.finalizers).toContain('example.org/hold');
      },
    );

    test('finalizers hold a deletion back', async () => {
      const made = await create(1, { finalizers: ['example.org/hold', 'example.org/other'] });
      await subject.beforeDelete?.(made);
      const marked = await storage.delete(context, keyOf(made));
      expect(marked.metadata.deletionTimestamp).toBeDefined();
      expect(await storage.delete(context, keyOf(made))).toEqual(marked);
      const more = withMeta(marked, { finalizers: [...(marked.metadata.finalizers ?? []), 'example.org/new'] });
      await expect(storage.update(context, more)).rejects.toMatchObject({ code: 'InvalidInput' });
      const fewer = await storage.update(context, withMeta(marked, { finalizers: ['example.org/other'] }));
      expect(fewer.metadata.deletionTimestamp).toBe(marked.metadata.deletionTimestamp);
      const watcher = watch(fewer.metadata.resourceVersion);
      await storage.update(context, withMeta(fewer, { finalizers: [] }));
      await expect(get(made)).rejects.toMatchObject({ code: 'NotFound' });
      expect(await watcher.next()).toMatchObject({ type: 'DELETED', object: { metadata: { uid: made.metadata.uid } } });
    });
  });
}

/** Reads a watch step by step and leaves bookmarks out. */
class Watcher<T extends KubernetesObject> {
  readonly end: AbortController;
  readonly #iterator: AsyncIterator<WatchEvent<T>>;

  constructor(events: AsyncIterable<WatchEvent<T>>, end: AbortController) {
    this.#iterator = events[Symbol.asyncIterator]();
    this.end = end;
  }

  raw(): Promise<IteratorResult<WatchEvent<T>>> {
    return this.#iterator.next();
  }

  async next(): Promise<WatchEvent<T>> {
    for (;;) {
      const result = await this.raw();
      if (result.done) throw new Error('the watch ended');
      if (result.value.type !== 'BOOKMARK') return result.value;
    }
  }
}

function withMeta<T extends KubernetesObject>(object: T, metadata: Partial<ObjectMeta>): T {
  return { ...object, metadata: { ...object.metadata, ...metadata } };
}

function versionOf<T extends KubernetesObject>(event: WatchEvent<T>): string {
  return event.type === 'BOOKMARK' ? event.resourceVersion : event.object.metadata.resourceVersion;
}

function expectFrozen(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  expect(Object.isFrozen(value)).toBe(true);
  for (const inner of Object.values(value)) expectFrozen(inner);
}
