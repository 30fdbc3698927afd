import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { isSluiceError } from '../../../foundation/sluice-error.ts';
import { ManualClock, settle } from '../../../foundation/time/manual-clock.ts';
import type { Stored } from '../../object/object.ts';
import type { RequestContext } from '../../object/request-context.ts';
import { type Widget, widgetKind } from '../../schema/testing.ts';
import { labelSelector, matchesLabels } from '../../selector/label-selector.ts';
import { EventLog } from '../../watch/event-log.ts';
import { MemoryStorage } from './memory-storage.ts';

const context: RequestContext = { actor: { name: 'test' }, face: 'api' };
const key = (name: string) => ({ namespace: 'default', name });

interface Expected {
  size: number;
  tier: string;
  ready: boolean;
  generation: number;
  finalizer: boolean;
  deleting: boolean;
}

const name = fc.constantFrom('a', 'b', 'c');
const step = fc.oneof(
  fc.record({ kind: fc.constant('create' as const), name, tier: fc.constantFrom('x', 'y'), finalizer: fc.boolean() }),
  fc.record({
    kind: fc.constant('update' as const),
    name,
    size: fc.nat(3),
    tier: fc.constantFrom('x', 'y'),
    stale: fc.boolean(),
  }),
  fc.record({ kind: fc.constant('status' as const), name, ready: fc.boolean() }),
  fc.record({ kind: fc.constant('release' as const), name }),
  fc.record({ kind: fc.constant('delete' as const), name }),
  fc.record({ kind: fc.constant('watch' as const), selector: fc.constantFrom('', 'tier=x', 'tier!=x') }),
);

/** A watcher that begins with a list and applies what it gets; it fails on an event that does not follow. */
async function follow(storage: MemoryStorage<Widget>, selector: string, end: AbortSignal) {
  const selection = { labelSelector: labelSelector(selector) };
  const { items, resourceVersion } = await storage.list(context, selection);
  const held = new Map(items.map((item) => [item.metadata.name, item]));
  let version = BigInt(resourceVersion);
  const running = (async () => {
    for await (const event of storage.watch(context, { ...selection, resourceVersion, signal: end })) {
      if (event.type === 'BOOKMARK') continue;
      const { object } = event;
      expect(held.has(object.metadata.name)).toBe(event.type !== 'ADDED');
      expect(BigInt(object.metadata.resourceVersion)).toBeGreaterThan(version);
      version = BigInt(object.metadata.resourceVersion);
      expect(matchesLabels(selection.labelSelector, object.metadata.labels)).toBe(true);
      if (event.type === 'DELETED') held.delete(object.metadata.name);
      else held.set(object.metadata.name, object);
    }
  })();
  return { held, running, selection };
}

function matchesModel(stored: Stored<Widget>, expected: Expected): void {
  expect(stored.spec.size).toBe(expected.size);
  expect(stored.metadata.labels).toEqual({ tier: expected.tier });
  expect(stored.status?.ready ?? false).toBe(expected.ready);
  expect(stored.metadata.generation).toBe(expected.generation);
  expect(stored.metadata.deletionTimestamp !== undefined).toBe(expected.deleting);
}

test('the storage behaves as the model, and watchers from any version get the same events', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const clock = new ManualClock();
      const log = new EventLog({ clock });
      const storage = new MemoryStorage(widgetKind, { clock, log });
      const model = new Map<string, Expected>();
      const read = new Map<string, Stored<Widget>>();
      const end = new AbortController();
      const watchers = [await follow(storage, '', end.signal)];
      const attempt = async (action: () => Promise<Stored<Widget>>): Promise<string> => {
        const before = log.version;
        try {
          const result = await action();
          return result.metadata.resourceVersion === log.version && log.version !== before ? 'changed' : 'same';
        } catch (error) {
          expect(log.version).toBe(before);
          if (isSluiceError(error)) return error.code;
          throw error;
        }
      };
      for (const each of steps) {
        if (each.kind === 'watch') {
          watchers.push(await follow(storage, each.selector, end.signal));
          continue;
        }
        const known = model.get(each.name);
        const now = known === undefined ? undefined : await storage.get(context, key(each.name));
        if (each.kind === 'create') {
          const finalizers = each.finalizer ? ['example.org/hold'] : [];
          const metadata = { ...key(each.name), labels: { tier: each.tier }, finalizers };
          const outcome = await attempt(() =>
            storage.create(context, widgetKind.complete({ metadata, spec: { size: 0 } })),
          );
          expect(outcome).toBe(known === undefined ? 'changed' : 'AlreadyExists');
          if (known === undefined)
            model.set(each.name, {
              size: 0,
              tier: each.tier,
              ready: false,
              generation: 1,
              finalizer: each.finalizer,
              deleting: false,
            });
        } else if (known === undefined || now === undefined) {
          expect(await attempt(() => storage.delete(context, key(each.name)))).toBe('NotFound');
        } else if (each.kind === 'update') {
          const base = each.stale ? (read.get(each.name) ?? now) : now;
          const fresh = base.metadata.resourceVersion === now.metadata.resourceVersion;
          const outcome = await attempt(() =>
            storage.update(context, {
              ...base,
              metadata: { ...base.metadata, labels: { tier: each.tier } },
              spec: { size: each.size },
            }),
          );
          const changes = known.size !== each.size || known.tier !== each.tier;
          expect(outcome).toBe(!fresh ? 'Conflict' : changes ? 'changed' : 'same');
          if (fresh) {
            known.generation += known.size === each.size ? 0 : 1;
            known.size = each.size;
            known.tier = each.tier;
          }
        } else if (each.kind === 'status') {
          const outcome = await attempt(() =>
            storage.updateSubResource(context, 'status', { ...now, status: { ready: each.ready } }),
          );
          expect(outcome === 'changed').toBe(now.status?.ready !== each.ready);
          known.ready = each.ready;
        } else if (each.kind === 'release') {
          const outcome = await attempt(() =>
            storage.update(context, { ...now, metadata: { ...now.metadata, finalizers: [] } }),
          );
          expect(outcome).toBe(known.finalizer ? 'changed' : 'same');
          known.finalizer = false;
          if (known.deleting) model.delete(each.name);
        } else {
          const outcome = await attempt(() => storage.delete(context, key(each.name)));
          expect(outcome).toBe(known.deleting ? 'same' : 'changed');
          known.deleting = true;
          if (!known.finalizer) model.delete(each.name);
        }
        const stored = model.has(each.name) ? await storage.get(context, key(each.name)) : undefined;
        if (stored !== undefined && !(each.kind === 'update' && each.stale)) read.set(each.name, stored);
      }
      await settle();
      const { items } = await storage.list(context);
      expect(items.map((item) => item.metadata.name)).toEqual([...model.keys()].sort());
      for (const item of items) matchesModel(item, model.get(item.metadata.name) as Expected);
      for (const { held, selection } of watchers) {
        const visible = await storage.list(context, selection);
        expect([...held.values()].sort((l, r) => (l.metadata.name < r.metadata.name ? -1 : 1))).toEqual(visible.items);
      }
      end.abort();
      await Promise.all(watchers.map((watcher) => watcher.running));
      expect(clock.pending).toBe(0);
    }),
    { numRuns: runs(300) },
  );
});
