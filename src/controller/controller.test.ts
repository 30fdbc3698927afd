import { describe, expect, test } from 'vitest';
import { SluiceError } from '../foundation/sluice-error.ts';
import { settle } from '../foundation/time/manual-clock.ts';
import { keyText, type ObjectKey } from '../resource/object/object.ts';
import { widgetKind } from '../resource/schema/testing.ts';
import { specChanged } from './predicates.ts';
import { TerminalError } from './reconciler.ts';
import { toObject, toOwner, triggerSource, watchKind } from './source.ts';
import { managerBench, settled, widgetSource } from './testing.ts';

describe('Controller', () => {
  test('reconciles what is there at the start and what changes later', async () => {
    const { manager, create, client } = managerBench();
    const seen: string[] = [];
    manager.addController({
      name: 'test',
      sources: [watchKind(widgetKind, { map: toObject, predicate: specChanged })],
      reconcile: async (key) => void seen.push(keyText(key)),
    });
    await create('a');
    await manager.start();
    await manager.idle();
    expect(seen).toEqual(['default/a']);
    const b = await create('b');
    await manager.idle();
    await client.updateStatus(widgetKind, { ...b, status: { ready: true } });
    await manager.idle();
    expect(seen).toEqual(['default/a', 'default/b']);
    await client.delete(widgetKind, { name: 'b' });
    await manager.idle();
    expect(seen).toEqual(['default/a', 'default/b', 'default/b']);
    await manager.stop();
  });

  test('work that does not heed its abort is reported as stuck, until it ends', async () => {
    const { clock, manager, create } = managerBench();
    const end = Promise.withResolvers<void>();
    manager.addController({
      name: 'test',
      sources: [widgetSource],
      reconcileTimeoutMs: 1000,
      reconcile: () => end.promise.then(() => ({})),
    });
    await create('a');
    await manager.start();
    await clock.advanceAsync(1000);
    expect(manager.stuck()).toEqual([]);
    await clock.advanceAsync(61_000);
    expect(manager.stuck()).toEqual(['test default/a']);
    end.resolve();
    await settle();
    expect(manager.stuck()).toEqual([]);
    await manager.stop();
  });

  test('a push that a Git host refuses is not tried again at once', async () => {
    const { clock, manager, create } = managerBench();
    let attempts = 0;
    manager.addController({
      name: 'test',
      sources: [widgetSource],
      reconcile: async () => {
        attempts += 1;
        throw new SluiceError('PushRefused', 'protected branch hook declined');
      },
    });
    await create('a');
    await manager.start();
    await clock.advanceAsync(59_000);
    expect(attempts).toBe(1);
    await clock.advanceAsync(2000);
    expect(attempts).toBe(2);
    await manager.stop();
  });

  test('an error is tried again after a growing pause, with the count of failures', async () => {
    const { clock, manager, create, records } = managerBench();
    const failures: number[] = [];
    manager.addController({
      name: 'test',
      sources: [widgetSource],
      async reconcile(_key, context) {
        failures.push(context.failures);
        if (context.failures < 3) throw new Error('not yet');
      },
    });
    await create('a');
    await manager.start();
    const idle = manager.idle();
    expect(await settled(idle)).toBe(false);
    expect(manager.failing()).toEqual([{ controller: 'test', key: 'default/a', failures: 1, message: 'not yet' }]);
    await clock.advanceAsync(5);
    expect(failures).toEqual([0, 1]);
    await clock.advanceAsync(29);
    expect(failures).toEqual([0, 1, 2]);
    await clock.advanceAsync(60);
    await idle;
    expect(failures).toEqual([0, 1, 2, 3]);
    expect(manager.failing()).toEqual([]);
    expect(records.map((record) => record.outcome)).toEqual(['error', 'error', 'error', 'success']);
    expect(manager.metrics().get('test')).toMatchObject({ depth: 0, retries: 3, failing: 0 });
    await manager.stop();
  });

  test('a TerminalError is tried again only after a change', async () => {
    const { clock, manager, create, client, records } = managerBench();
    manager.addController({
      name: 'test',
      sources: [widgetSource],
      async reconcile() {
        throw new TerminalError('this input cannot work');
      },
    });
    const a = await create('a');
    await manager.start();
    await manager.idle();
    await clock.advanceAsync(3_600_000);
    expect(records.map((record) => record.outcome)).toEqual(['terminal-error']);
    expect(manager.metrics().get('test')).toMatchObject({ failing: 1 });
    expect(manager.failing()).toMatchObject([{ message: 'this input cannot work' }]);
    await client.update(widgetKind, { ...a, spec: { ...a.spec, size: 2 } });
    await manager.idle();
    expect(records).toHaveLength(2);
    await manager.stop();
  });

  test('requeueAfter is waited for with its reason and does not keep the manager from being idle', async () => {
    const { clock, manager, create, records } = managerBench();
    manager.addController({
      name: 'test',
      sources: [widgetSource],
      reconcile: async () => (records.length === 0 ? { requeueAfter: 60_000, reason: 'the next look' } : undefined),
    });
    await create('a');
    await manager.start();
    await manager.idle();
    const due = clock.now() + 60_000;
    expect(manager.waiting()).toEqual([{ controller: 'test', key: 'default/a', due, reason: 'the next look' }]);
    await clock.advanceAsync(60_000);
    expect(records.map((record) => record.outcome)).toEqual(['requeue-after', 'success']);
    expect(manager.waiting()).toEqual([]);
    await manager.stop();
  });

  test('a time in the past, requested all the time, is no busy loop', async () => {
    const { clock, manager, create, records } = managerBench();
    manager.addController({ name: 'test', sources: [widgetSource], reconcile: async () => ({ requeueAfter: -1 }) });
    await create('a');
    await manager.start();
    await clock.advanceAsync(1000);
    expect(records.length).toBeLessThan(30);
    await manager.stop();
  });

  test('works on as many requests at once as it may, never twice on one', async () => {
    const { manager, create, client } = managerBench();
    const inHand = new Map<string, () => void>();
    let most = 0;
    manager.addController({
      name: 'test',
      sources: [widgetSource],
      maxConcurrentReconciles: 2,
      async reconcile(key) {
        expect(inHand.has(key.name)).toBe(false);
        await new Promise<void>((resolve) => inHand.set(key.name, resolve));
        inHand.delete(key.name);
      },
    });
    const made = [await create('a'), await create('b'), await create('c')];
    await manager.start();
    for (let round = 0; round < 12; round += 1) {
      await settle();
      most = Math.max(most, inHand.size);
      const object = made[round % 3];
      if (object !== undefined && round < 6) {
        const labels = { round: `${round}` };
        await client.patch(widgetKind, { name: object.metadata.name }, { metadata: { labels } });
      }
      const first = inHand.values().next().value;
      first?.();
    }
    expect(most).toBe(2);
    await manager.stop();
  });

  test('a request that is prioritized goes first, and workers that begin later share no processor with it', async () => {
    const { clock, manager, create } = managerBench();
    const order: string[] = [];
    let prioritize: (key: ObjectKey) => void = () => undefined;
    const started = Promise.withResolvers<void>();
    manager.addController({
      name: 'test',
      sources: [
        widgetSource,
        {
          start(context) {
            prioritize = context.prioritize;
            return () => undefined;
          },
        },
      ],
      maxConcurrentReconciles: 3,
      workerStart: { atOnce: 1, intervalMs: 100 },
      async reconcile({ name }) {
        order.push(name);
        await started.promise;
      },
    });
    const made = [await create('a'), await create('b'), await create('c'), await create('d')];
    await manager.start();
    await settle();
    expect(order).toEqual(['a']);
    for (const { metadata } of made.slice(0, 3)) prioritize(metadata);
    await clock.advanceAsync(100);
    expect(order).toEqual(['a', 'c']);
    await clock.advanceAsync(100);
    expect(order).toEqual(['a', 'c', 'b']);
    started.resolve();
    await settle();
    expect(order).toEqual(['a', 'c', 'b', 'd']);
    await manager.stop();
  });

  test('a reconciliation that takes too long is aborted and counts as failed', async () => {
    const { clock, manager, create, records } = managerBench();
    manager.addController({
      name: 'test',
      sources: [widgetSource],
      reconcileTimeoutMs: 1000,
      reconcile: (_key, { signal }) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))),
    });
    await create('a');
    await manager.start();
    await settle();
    await clock.advanceAsync(1000);
    expect(records[0]).toMatchObject({ outcome: 'error', milliseconds: 1000, error: { code: 'Timeout' } });
    await Promise.all([manager.stop(0), clock.advanceAsync(1)]);
  });

  test('owners are found by their references, former ones too', async () => {
    const { manager, client, create } = managerBench();
    const seen: ObjectKey[] = [];
    const map = toOwner(widgetKind);
    manager.addController({
      name: 'test',
      sources: [watchKind(widgetKind, { map })],
      reconcile: async (key) => void seen.push(key),
    });
    const [a, b] = [await create('a'), await create('b')];
    const ownedBy = (owner: typeof a) => [
      { apiVersion: 'test.sluice.dev/v2', kind: 'Widget', name: owner.metadata.name, uid: owner.metadata.uid },
      { apiVersion: 'other/v1', kind: 'Widget', name: 'unrelated', uid: 'u' },
    ];
    await manager.start();
    const owned = await client.create(widgetKind, { metadata: { name: 'c', ownerReferences: ownedBy(a) }, spec: {} });
    await manager.idle();
    expect(seen).toEqual([{ namespace: 'default', name: 'a' }]);
    await client.update(widgetKind, { ...owned, metadata: { ...owned.metadata, ownerReferences: ownedBy(b) } });
    await manager.idle();
    expect(seen.slice(1).map((key) => key.name)).toEqual(['a', 'b']);
    await manager.stop();
  });

  test('a mapping that fails is tried again and loses no event', async () => {
    const { clock, manager, create, errors } = managerBench();
    const seen: string[] = [];
    let attempts = 0;
    manager.addController<string>({
      name: 'test',
      keyOf: (request) => request,
      sources: [
        watchKind(widgetKind, {
          async map({ object }) {
            attempts += 1;
            if (attempts < 3) throw new Error('cannot list');
            return [`mapped ${object.metadata.name}`];
          },
        }),
      ],
      reconcile: async (request) => void seen.push(request),
    });
    await create('a');
    await manager.start();
    const idle = manager.idle();
    expect(await settled(idle)).toBe(false);
    await clock.advanceAsync(1000);
    await idle;
    expect(seen).toEqual(['mapped a']);
    expect(errors).toHaveLength(2);
    await manager.stop();
  });

  test('triggers from outside request work, and no longer after the stop', async () => {
    const { manager } = managerBench();
    const seen: string[] = [];
    let pull: ((name: string) => void) | undefined;
    manager.addController<string>({
      name: 'test',
      keyOf: (request) => request,
      sources: [
        triggerSource((enqueue) => {
          pull = enqueue;
          return () => {
            pull = undefined;
          };
        }),
      ],
      reconcile: async (request) => void seen.push(request),
    });
    await manager.start();
    pull?.('now');
    await manager.idle();
    expect(seen).toEqual(['now']);
    await manager.stop();
    expect(pull).toBeUndefined();
  });
});
