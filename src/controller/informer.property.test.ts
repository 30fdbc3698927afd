import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../test/support/runs.ts';
import { settle } from '../foundation/time/manual-clock.ts';
import { keyOf, keyText } from '../resource/object/object.ts';
import { type Widget, widgetKind } from '../resource/schema/testing.ts';
import { Informer, type InformerOptions } from './informer.ts';
import { type Fault, settled, testBench } from './testing.ts';

function setUp(options: { window?: number } & Partial<InformerOptions<Widget>> = {}) {
  const bench = testBench(options);
  const errors: unknown[] = [];
  const informer = new Informer<Widget>({
    client: bench.client,
    kind: widgetKind,
    clock: bench.clock,
    random: () => 0.5,
    onError: (error) => errors.push(error),
    ...options,
  });
  informer.addIndex('color', (widget) => (widget.spec.color === undefined ? [] : [widget.spec.color]));
  return { ...bench, informer, errors };
}

/** The events that the handlers got, applied; fails on an event that does not follow from the ones before. */
function mirror(informer: Informer<Widget>): Map<string, string> {
  const held = new Map<string, string>();
  informer.addHandler((event) => {
    const key = keyText(keyOf(event.object));
    expect(held.has(key)).toBe(event.type !== 'add');
    if (event.type === 'update') expect(held.get(key)).toBe(event.old.metadata.resourceVersion);
    if (event.type === 'delete') held.delete(key);
    else held.set(key, event.object.metadata.resourceVersion);
  });
  return held;
}

const succeeded = () => true;
const failed = () => false;

const versions = (widgets: readonly Widget[]) =>
  new Map(widgets.map((widget) => [keyText(keyOf(widget)), widget.metadata.resourceVersion]));

describe('Informer', () => {
  test('lists, then watches; a late handler gets the current objects', async () => {
    const { client, informer } = setUp();
    await client.create(widgetKind, { metadata: { name: 'a' }, spec: { color: 'red' } });
    const held = mirror(informer);
    expect(informer.synced).toBe(false);
    informer.start();
    await informer.whenSynced();
    expect(held.size).toBe(1);
    const b = await client.create(widgetKind, { metadata: { name: 'b' }, spec: { color: 'red' } });
    await settle();
    expect(informer.byIndex('color', 'red').map((widget) => widget.metadata.name)).toEqual(['a', 'b']);
    await client.update(widgetKind, { ...b, spec: { ...b.spec, color: 'blue' } });
    await settle();
    expect(informer.byIndex('color', 'red').map((widget) => widget.metadata.name)).toEqual(['a']);
    expect(informer.get({ namespace: 'default', name: 'b' })?.spec.color).toBe('blue');
    await client.delete(widgetKind, { name: 'a' });
    await settle();
    expect(informer.byIndex('color', 'red')).toEqual([]);
    expect(mirror(informer)).toEqual(versions(informer.list()));
    await informer.stop();
  });

  test('a stop during the first list ends it, without a watch that would go on', async () => {
    const { informer } = setUp();
    informer.start();
    const stopped = informer.stop();
    expect(await settled(stopped)).toBe(true);
  });

  test('a handler that throws affects neither the store nor other handlers', async () => {
    const { client, informer, errors } = setUp();
    informer.addHandler(() => {
      throw new Error('from a handler');
    });
    const held = mirror(informer);
    informer.start();
    await client.create(widgetKind, { metadata: { name: 'a' }, spec: {} });
    await settle();
    expect(held.size).toBe(1);
    expect(errors).toMatchObject([{ message: 'from a handler' }]);
    await informer.stop();
  });

  test('a deletion that no watch delivered is reported after the relist', async () => {
    const { clock, client, widgets, informer } = setUp();
    await client.create(widgetKind, { metadata: { name: 'a' }, spec: {} });
    const held = mirror(informer);
    informer.start();
    await informer.whenSynced();
    await settle();
    widgets.nextFault = () => 'expire';
    await client.create(widgetKind, { metadata: { name: 'b' }, spec: {} });
    await settle();
    await client.delete(widgetKind, { name: 'a' });
    expect(informer.list()).toHaveLength(2);
    widgets.nextFault = () => undefined;
    await clock.advanceAsync(60_000);
    expect(held).toEqual(versions((await client.list(widgetKind)).items));
    expect([...held.keys()]).toEqual(['default/b']);
    await informer.stop();
  });

  test('a name that another object takes is a deletion and an addition', async () => {
    const { clock, client, widgets, informer } = setUp();
    await client.create(widgetKind, { metadata: { name: 'a' }, spec: {} });
    informer.start();
    await informer.whenSynced();
    await settle();
    widgets.nextFault = () => 'expire';
    await client.create(widgetKind, { metadata: { name: 'b' }, spec: {} });
    await settle();
    await client.delete(widgetKind, { name: 'a' });
    await client.create(widgetKind, { metadata: { name: 'a' }, spec: {} });
    const seen: string[] = [];
    informer.addHandler(({ type, object }) => seen.push(`${type} ${object.metadata.name}`));
    seen.length = 0;
    widgets.nextFault = () => undefined;
    await clock.advanceAsync(60_000);
    expect(seen).toEqual(['delete a', 'add a']);
    await informer.stop();
  });

  test('a storage that fails all the time is requested less and less often', async () => {
    const { clock, widgets, informer, errors } = setUp();
    widgets.nextFault = () => 'error';
    informer.start();
    await clock.advanceAsync(10 * 60_000);
    expect(errors.length).toBeGreaterThan(10);
    expect(errors.length).toBeLessThan(50);
    await informer.stop();
    await expect(informer.whenSynced()).rejects.toMatchObject({ code: 'Unavailable' });
  });

  test('a watch that ends at once again and again is no busy loop', async () => {
    const { clock, widgets, informer, errors } = setUp();
    widgets.nextFault = () => 'end';
    informer.start();
    await clock.advanceAsync(60_000);
    expect(informer.synced).toBe(true);
    expect(errors.length).toBeLessThan(30);
    await informer.stop();
  });

  test('a watch that delivers nothing is begun again, even if it does not heed the abort', async () => {
    for (const fault of ['silent', 'deaf'] as const) {
      const { clock, client, widgets, informer } = setUp();
      widgets.nextFault = () => undefined;
      informer.start();
      await informer.whenSynced();
      await settle();
      widgets.nextFault = () => fault;
      await client.create(widgetKind, { metadata: { name: 'a' }, spec: {} });
      await settle();
      await client.create(widgetKind, { metadata: { name: 'b' }, spec: {} });
      await clock.advanceAsync(30_000);
      expect(informer.list()).toHaveLength(1);
      widgets.nextFault = () => undefined;
      await clock.advanceAsync(60_000);
      expect(informer.list()).toHaveLength(2);
      await informer.stop();
    }
  });

  test('bookmarks keep a quiet watch from expiring', async () => {
    const { clock, client, log, informer, errors } = setUp({ window: 20 });
    informer.start();
    await informer.whenSynced();
    for (let round = 0; round < 50; round += 1)
      log.append('another kind', () => ({ before: undefined, after: undefined }));
    await clock.advanceAsync(120_000);
    await client.create(widgetKind, { metadata: { name: 'a' }, spec: {} });
    await settle();
    expect(informer.list()).toHaveLength(1);
    expect(errors).toEqual([]);
    await informer.stop();
  });

  test('isCurrent is false while an event is on its way', async () => {
    const { clock, client, widgets, informer } = setUp();
    expect(await informer.isCurrent()).toBe(false);
    informer.start();
    await informer.whenSynced();
    await settle();
    expect(await informer.isCurrent()).toBe(true);
    const a = await client.create(widgetKind, { metadata: { name: 'a' }, spec: {} });
    await settle();
    widgets.nextFault = () => 'silent';
    await client.create(widgetKind, { metadata: { name: 'b' }, spec: {} });
    await settle();
    widgets.nextFault = () => undefined;
    // The watch hangs after b: from here on the store falls behind.
    for (const change of [
      () => client.update(widgetKind, { ...a, spec: { ...a.spec, size: 7 } }),
      () => client.delete(widgetKind, { name: 'b' }),
    ]) {
      await change();
      await settle();
      expect(await informer.isCurrent()).toBe(false);
    }
    await clock.advanceAsync(120_000);
    expect(await informer.isCurrent()).toBe(true);
    await informer.stop();
  });

  test('despite random faults the store becomes equal to the storage, and handlers get events without gaps', async () => {
    const name = fc.constantFrom('a', 'b', 'c', 'd');
    const namespace = fc.constantFrom('default', 'other');
    const step = fc.oneof(
      fc.record({ kind: fc.constant('put' as const), namespace, name, size: fc.nat(5) }),
      fc.record({ kind: fc.constant('delete' as const), namespace, name }),
      fc.record({ kind: fc.constant('wait' as const), milliseconds: fc.nat(20_000) }),
      fc.record({ kind: fc.constant('settle' as const) }),
      fc.record({ kind: fc.constant('refresh' as const), namespace: fc.option(namespace, { nil: undefined }) }),
    );
    const fault = fc.constantFrom<(Fault | undefined)[]>(
      undefined,
      undefined,
      'error',
      'expire',
      'end',
      'silent',
      'deaf',
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), fc.array(fault, { maxLength: 40 }), async (steps, faults) => {
        const { clock, client, widgets, informer } = setUp({ window: 4 });
        let strikes = 0;
        widgets.nextFault = () => faults[strikes++];
        const held = mirror(informer);
        informer.start();
        for (const each of steps) {
          if (each.kind === 'put') {
            const key = { namespace: each.namespace, name: each.name };
            const input = { metadata: key, spec: { size: each.size } };
            const old = await client.find(widgetKind, key);
            if (old === undefined) await client.create(widgetKind, input);
            else await client.update(widgetKind, { ...old, spec: input.spec });
          } else if (each.kind === 'delete') {
            await client.delete(widgetKind, { namespace: each.namespace, name: each.name }).catch(() => undefined);
          } else if (each.kind === 'wait') await clock.advanceAsync(each.milliseconds);
          else if (each.kind === 'settle') await settle();
          else if (await informer.refresh(undefined, each.namespace).then(succeeded, failed)) {
            // A refresh that succeeded brought the store up to date, however far behind the watch is.
            const nextFault = widgets.nextFault;
            widgets.nextFault = () => undefined;
            const [scope, read] =
              each.namespace === undefined
                ? [{}, informer.list()]
                : [{ namespace: each.namespace }, informer.inNamespace(each.namespace)];
            expect(versions(read)).toEqual(versions((await client.list(widgetKind, scope)).items));
            widgets.nextFault = nextFault;
          }
        }
        widgets.nextFault = () => undefined;
        await clock.advanceAsync(5 * 60_000);
        const truth = versions((await client.list(widgetKind)).items);
        expect(versions(informer.list())).toEqual(truth);
        expect(held).toEqual(truth);
        expect(await informer.isCurrent()).toBe(true);
        await informer.stop();
        await settle();
        expect(clock.pending).toBe(0);
      }),
      { numRuns: runs(200) },
    );
  });
});
