import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../test/support/runs.ts';
import { settle } from '../foundation/time/manual-clock.ts';
import { widgetKind } from '../resource/schema/testing.ts';
import { ObjectReader } from './object-reader.ts';
import { managerBench, settled, widgetSource } from './testing.ts';

describe('Manager', () => {
  test('no controller works before every informer is synced', async () => {
    const { clock, manager, widgets: storage, create, records } = managerBench();
    let broken = true;
    storage.nextFault = () => (broken ? 'error' : undefined);
    manager.addController({ name: 'test', sources: [widgetSource], reconcile: async () => undefined });
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

  test('a shared informer wakes controllers when its reader shows the change, and outlives the manager', async () => {
    const { client, clock, manager, create } = managerBench();
    const reader = new ObjectReader({ client, clock, kind: widgetKind });
    manager.share(reader.informer);
    expect(manager.informer(widgetKind)).toBe(reader.informer);
    const seen: (number | undefined)[] = [];
    manager.addController({
      name: 'test',
      sources: [widgetSource],
      reconcile: async (key) => void seen.push(reader.get(key)?.spec.size),
    });
    await reader.start();
    await manager.start();
    const a = await create('a', 1);
    await manager.idle();
    await client.update(widgetKind, { ...a, spec: { size: 2 } });
    // The change comes by the list of a decision rather than by the watch.
    await reader.refresh();
    await manager.idle();
    expect(seen).toEqual([1, 2]);
    await manager.stop();
    await create('b');
    await settle();
    expect(reader.list()).toHaveLength(2);
    await reader.stop();
  });

  test('the informer of a selection ends when no source has a handler there', async () => {
    const { manager } = managerBench();
    await manager.start();
    const selection = { namespace: 'one' };
    const informer = manager.informer(widgetKind, selection);
    const other = manager.informer(widgetKind, { namespace: 'other' });
    const ends = [informer.addHandler(() => undefined), informer.addHandler(() => undefined)];
    await informer.whenSynced();
    for (const end of ends) {
      manager.release(widgetKind, selection);
      expect(manager.informer(widgetKind, selection)).toBe(informer);
      end();
    }
    manager.release(widgetKind, selection);
    expect(manager.informer(widgetKind, selection)).not.toBe(informer);
    expect(manager.informer(widgetKind, { namespace: 'other' })).toBe(other);
    await manager.stop();
  });

  test('stop waits for what runs, then aborts it, and takes nothing new', async () => {
    const { clock, manager, create, records } = managerBench();
    let aborted = false;
    manager.addController({
      name: 'test',
      sources: [widgetSource],
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

  test('work that does not heed its abort is left behind and reported', async () => {
    const { clock, manager, create, errors } = managerBench();
    manager.addController({ name: 'test', sources: [widgetSource], reconcile: () => new Promise(() => undefined) });
    await create('a');
    await manager.start();
    await settle();
    const stopped = manager.stop(1000);
    await clock.advanceAsync(6000);
    await stopped;
    expect(errors).toEqual(['test: SluiceError: 1 reconciliations do not heed their abort']);
  });

  test('controllers that trigger each other without end do not block the event loop', async () => {
    const { manager, create, client } = managerBench();
    let rounds = 0;
    manager.addController({
      name: 'test',
      sources: [widgetSource],
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
    const { clock, manager, widgets: storage } = managerBench();
    storage.nextFault = () => 'error';
    manager.addController({ name: 'test', sources: [widgetSource], reconcile: async () => undefined });
    const started = manager.start();
    const outcome = expect(started).rejects.toMatchObject({ code: 'Unavailable' });
    await settle();
    await manager.stop();
    await outcome;
    expect(clock.pending).toBe(0);
  });

  test('an event that is still in the pipe is not idle', async () => {
    const { clock, manager, widgets: storage, create, records } = managerBench();
    manager.addController({ name: 'test', sources: [widgetSource], reconcile: async () => undefined });
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
    await clock.advanceAsync(200_000);
    await idle;
    expect(records.map((record) => record.key)).toEqual(['default/a', 'default/b']);
    await manager.stop();
  });

  test('a busy runnable is not idle; a signal ends the wait; runnables stop last, in reverse', async () => {
    const { clock, manager } = managerBench();
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
    const { clock, manager, create } = managerBench();
    manager.addController({
      name: 'test',
      sources: [widgetSource],
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
    const { manager } = managerBench();
    const options = { name: 'test', sources: [], reconcile: async () => undefined };
    manager.addController(options);
    expect(() => manager.addController(options)).toThrow(/two controllers named test/);
    await manager.start();
    expect(() => manager.addController({ ...options, name: 'late' })).toThrow(/started before/);
    await manager.stop();
  });

  test('after idle nothing more happens, even if controllers trigger each other', async () => {
    const plan = fc.record({
      objects: fc.integer({ min: 1, max: 4 }),
      target: fc.integer({ min: 1, max: 5 }),
      pauses: fc.array(fc.nat(3), { minLength: 1, maxLength: 20 }),
      failures: fc.array(fc.boolean(), { maxLength: 10 }),
    });
    await fc.assert(
      fc.asyncProperty(plan, async ({ objects, target, pauses, failures }) => {
        const { clock, client, manager, create } = managerBench();
        let step = 0;
        let failed = 0;
        // Two controllers push one number up in turns until it is reached; each step wakes the other.
        for (const parity of [0, 1])
          manager.addController({
            name: `parity ${parity}`,
            sources: [widgetSource],
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
      { numRuns: runs(60) },
    );
  });
});
