import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { settle } from '../foundation/manual-clock.ts';
import { keyText, type ObjectKey } from '../resource/object.ts';
import { widgetKind } from '../resource/testing.ts';
import type { ReconcileRecord } from './controller.ts';
import { Manager, type ManagerOptions } from './manager.ts';
import { specChanged } from './predicates.ts';
import { TerminalError } from './reconciler.ts';
import { toObject, toOwner, triggerSource, watchKind } from './source.ts';
import { testBench } from './testing.ts';

function setUp(options: Partial<ManagerOptions> = {}) {
  const bench = testBench();
  const records: ReconcileRecord[] = [];
  const errors: string[] = [];
  const manager = new Manager({
    client: bench.client,
    clock: bench.clock,
    random: () => 0.5,
    onReconcile: (record) => records.push(record),
    onError: (error, where) => errors.push(`${where}: ${String(error)}`),
    ...options,
  });
  const create = (name: string, size = 1) => bench.client.create(widgetKind, { metadata: { name }, spec: { size } });
  return { ...bench, manager, records, errors, create };
}

const widgets = watchKind(widgetKind, { map: toObject });

/** True once the promise has settled, judged after everything that is ready has run. */
async function settled(promise: Promise<unknown>): Promise<boolean> {
  let done = false;
  promise.then(
    () => (done = true),
    () => (done = true),
  );
  for (let round = 0; round < 5; round += 1) await settle();
  return done;
}

describe('Controller', () => {
  test('reconciles what is there at the start and what changes later', async () => {
    const { manager, create, client } = setUp();
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

  test('an error is tried again after a growing pause, with the count of failures', async () => {
    const { clock, manager, create, records } = setUp();
    const failures: number[] = [];
    manager.addController({
      name: 'test',
      sources: [widgets],
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
    const { clock, manager, create, client, records } = setUp();
    manager.addController({
      name: 'test',
      sources: [widgets],
      async reconcile() {
        throw new TerminalError('this input cannot work');
      },
    });
    const a = await create('a');
    await manager.start();
    await manager.idle();
    await clock.advanceAsync(3_600_000);
    expect(records.map((record) => record.outcome)).toEqual(['terminal-error']);
    expect(manager.failing()).toMatchObject([{ message: 'this input cannot work' }]);
    await client.update(widgetKind, { ...a, spec: { ...a.spec, size: 2 } });
    await manager.idle();
    expect(records).toHaveLength(2);
    await manager.stop();
  });

  test('requeueAfter is waited for with its reason and does not keep the manager from being idle', async () => {
    const { clock, manager, create, records } = setUp();
    manager.addController({
      name: 'test',
      sources: [widgets],
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

  test('a time in the past, asked for all the time, is no busy loop', async () => {
    const { clock, manager, create, records } = setUp();
    manager.addController({ name: 'test', sources: [widgets], reconcile: async () => ({ requeueAfter: -1 }) });
    await create('a');
    await manager.start();
    await clock.advanceAsync(1000);
    expect(records.length).toBeLessThan(30);
    await manager.stop();
  });

  test('works on as many requests at once as it may, never twice on one', async () => {
    const { manager, create, client } = setUp();
    const inHand = new Map<string, () => void>();
    let most = 0;
    manager.addController({
      name: 'test',
      sources: [widgets],
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

  test('a reconciliation that takes too long is aborted and counts as failed', async () => {
    const { clock, manager, create, records } = setUp();
    manager.addController({
      name: 'test',
      sources: [widgets],
      reconcileTimeout: 1000,
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
    const { manager, client, create } = setUp();
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
    const { clock, manager, create, errors } = setUp();
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

  test('triggers from outside ask for work, and no longer after the stop', async () => {
    const { manager } = setUp();
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

describe('Manager', () => {
  test('no controller works before every informer is synced', async () => {
    const { clock, manager, widgets: storage, create, records } = setUp();
    let broken = true;
    storage.nextFault = () => (broken ? 'error' : undefined);
    manager.addController({ name: 'test', sources: [widgets], reconcile: async () => undefined });
    await create('a');
    const started = manager.start();
    await clock.advanceAsync(1000);
    expect(records).toEqual([]);
    expect(await settled(started)).toBe(false);
    broken = false;
    await clock.advanceAsync(60_000);
    await started;
    await manager.idle();
    expect(records).toHaveLength(1);
    await manager.stop();
  });

  test('stop waits for what runs, then aborts it, and takes nothing new', async () => {
    const { clock, manager, create, records } = setUp();
    let aborted = false;
    manager.addController({
      name: 'test',
      sources: [widgets],
      reconcile: (_key, { signal }) =>
        new Promise<void>((resolve) =>
          signal.addEventListener('abort', () => {
            aborted = true;
            resolve();
          }),
        ),
    });
    await create('a');
    await create('b');
    await manager.start();
    await settle();
    const stopped = manager.stop(5000);
    expect(await settled(stopped)).toBe(false);
    await clock.advanceAsync(4999);
    expect(aborted).toBe(false);
    await clock.advanceAsync(1);
    await stopped;
    expect(aborted).toBe(true);
    expect(records).toHaveLength(1);
    await expect(manager.idle()).rejects.toMatchObject({ code: 'Unavailable' });
  });

  test('work that does not heed its abort is left behind and told', async () => {
    const { clock, manager, create, errors } = setUp();
    manager.addController({ name: 'test', sources: [widgets], reconcile: () => new Promise(() => undefined) });
    await create('a');
    await manager.start();
    await settle();
    const stopped = manager.stop(1000);
    await clock.advanceAsync(6000);
    await stopped;
    expect(errors).toEqual(['test: SluiceError: 1 reconciliations do not heed their abort']);
  });

  test('controllers that wake each other without end leave the event loop its turns', async () => {
    const { manager, create, client } = setUp();
    let rounds = 0;
    manager.addController({
      name: 'test',
      sources: [widgets],
      async reconcile(key) {
        rounds += 1;
        if (rounds < 20_000) await client.patch(widgetKind, key, { spec: { size: rounds + 1 } });
      },
    });
    await create('a');
    await manager.start();
    await settle();
    await settle();
    expect(rounds).toBeGreaterThan(10);
    expect(rounds).toBeLessThan(1000);
    await manager.stop();
  });

  test('stop ends a start that waits, and leaves no timer behind', async () => {
    const { clock, manager, widgets: storage } = setUp();
    storage.nextFault = () => 'error';
    manager.addController({ name: 'test', sources: [widgets], reconcile: async () => undefined });
    const started = manager.start();
    const outcome = expect(started).rejects.toMatchObject({ code: 'Unavailable' });
    await settle();
    await manager.stop();
    await outcome;
    expect(clock.pending).toBe(0);
  });

  test('an event that is still in the pipe is not idle', async () => {
    const { clock, manager, widgets: storage, create, records } = setUp();
    manager.addController({ name: 'test', sources: [widgets], reconcile: async () => undefined });
    await manager.start();
    await manager.idle();
    storage.nextFault = () => 'silent';
    await create('a');
    await settle();
    storage.nextFault = () => undefined;
    await create('b');
    const idle = manager.idle();
    expect(await settled(idle)).toBe(false);
    expect(records).toHaveLength(1);
    await clock.advanceAsync(120_000);
    await idle;
    expect(records.map((record) => record.key)).toEqual(['default/a', 'default/b']);
    await manager.stop();
  });

  test('a busy runnable is not idle; a signal ends the wait; runnables stop last, in reverse', async () => {
    const { clock, manager } = setUp();
    let busy = true;
    const order: string[] = [];
    for (const name of ['first', 'second'])
      manager.add({
        name,
        start: () => void order.push(`start ${name}`),
        stop: async () => void order.push(`stop ${name}`),
        busy: () => busy,
      });
    await manager.start();
    const gaveUp = manager.idle({ signal: AbortSignal.abort(new Error('enough')) });
    await expect(gaveUp).rejects.toThrow('enough');
    const end = new AbortController();
    const endless = manager.idle({ signal: end.signal });
    expect(await settled(endless)).toBe(false);
    end.abort(new Error('later'));
    await expect(endless).rejects.toThrow('later');
    const idle = manager.idle();
    expect(await settled(idle)).toBe(false);
    busy = false;
    await clock.advanceAsync(100);
    await idle;
    await manager.stop();
    expect(order).toEqual(['start first', 'start second', 'stop second', 'stop first']);
  });

  test('an item that keeps failing can be left out of the wait', async () => {
    const { clock, manager, create } = setUp();
    manager.addController({
      name: 'test',
      sources: [widgets],
      async reconcile() {
        throw new Error('never');
      },
    });
    await create('a');
    await manager.start();
    const patient = manager.idle();
    const limited = manager.idle({ failureLimit: 4 });
    patient.catch(() => undefined);
    await clock.advanceAsync(20);
    expect(await settled(limited)).toBe(false);
    await clock.advanceAsync(100);
    await limited;
    expect(await settled(patient)).toBe(false);
    expect(manager.failing()[0]?.failures).toBeGreaterThanOrEqual(4);
    await manager.stop();
  });

  test('one name, one controller; nothing is added after the start', async () => {
    const { manager } = setUp();
    const options = { name: 'test', sources: [], reconcile: async () => undefined };
    manager.addController(options);
    expect(() => manager.addController(options)).toThrow(/two controllers named test/);
    await manager.start();
    expect(() => manager.addController({ ...options, name: 'late' })).toThrow(/started before/);
    await manager.stop();
  });

  test('after idle nothing more happens, however controllers wake each other', async () => {
    const plan = fc.record({
      objects: fc.integer({ min: 1, max: 4 }),
      target: fc.integer({ min: 1, max: 5 }),
      pauses: fc.array(fc.nat(3), { minLength: 1, maxLength: 20 }),
      failures: fc.array(fc.boolean(), { maxLength: 10 }),
    });
    await fc.assert(
      fc.asyncProperty(plan, async ({ objects, target, pauses, failures }) => {
        const { clock, client, manager, create } = setUp();
        let step = 0;
        let failed = 0;
        // Two controllers push one number up in turns until it is reached; each step wakes the other.
        for (const parity of [0, 1])
          manager.addController({
            name: `parity ${parity}`,
            sources: [widgets],
            maxConcurrentReconciles: 2,
            async reconcile(key) {
              const pause = pauses[step++ % pauses.length] ?? 0;
              for (let round = 0; round < pause; round += 1) await settle();
              if (failures[failed++] === true) throw new Error('injected');
              const widget = await client.get(widgetKind, key);
              if (widget.spec.size % 2 !== parity || widget.spec.size >= target) return;
              await client.update(widgetKind, { ...widget, spec: { ...widget.spec, size: widget.spec.size + 1 } });
            },
          });
        for (let index = 0; index < objects; index += 1) await create(`widget-${index}`, 0);
        await manager.start();
        let idle = false;
        const waiting = manager.idle().then(() => {
          idle = true;
        });
        while (!idle) await clock.advanceAsync(1);
        await waiting;
        const steps = step;
        const { items } = await client.list(widgetKind);
        expect(items.map((widget) => widget.spec.size)).toEqual(items.map(() => target));
        for (let round = 0; round < 10; round += 1) await settle();
        expect(step).toBe(steps);
        await manager.stop();
      }),
      { numRuns: 60 },
    );
  });
});
