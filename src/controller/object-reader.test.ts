import { describe, expect, test } from 'vitest';
import { settle } from '../foundation/time/manual-clock.ts';
import { type Widget, widgetKind } from '../resource/schema/testing.ts';
import { ObjectReader } from './object-reader.ts';
import { settled, testBench } from './testing.ts';

function setUp() {
  const bench = testBench();
  const reader = new ObjectReader<Widget>({ ...bench, kind: widgetKind, refreshTimeoutMs: 1000 });
  const names = () => reader.list().map(({ metadata }) => metadata.name);
  const create = (name: string) => bench.client.create(widgetKind, { metadata: { name }, spec: {} });
  return { ...bench, reader, names, create };
}

describe('ObjectReader', () => {
  test('throws Unavailable until the objects were read, also where there are none', async () => {
    const { clock, widgets, reader, names } = setUp();
    widgets.nextFault = () => 'error';
    const started = reader.start();
    await clock.advanceAsync(5000);
    expect(() => reader.list()).toThrow(expect.objectContaining({ code: 'Unavailable' }));
    expect(() => reader.get({ namespace: 'default', name: 'a' })).toThrow(/have not been read yet/);
    expect(await settled(started)).toBe(false);
    widgets.nextFault = () => undefined;
    await clock.advanceAsync(30_000);
    await started;
    expect(names()).toEqual([]);
    await reader.stop();
  });

  test('after a refresh every acknowledged write is read, even if the watch is behind', async () => {
    const { clock, client, widgets, reader, names, create } = setUp();
    await reader.start();
    await settle();
    widgets.nextFault = () => 'deaf';
    await create('b');
    await settle();
    await create('a');
    await client.delete(widgetKind, { name: 'b' });
    expect(names()).toEqual(['b']);
    widgets.nextFault = () => undefined;
    await reader.refresh();
    expect(names()).toEqual(['a']);
    // The watch begins again before these changes, and takes nothing back.
    const seen: string[] = [];
    reader.informer.addHandler(({ type, object }) => seen.push(`${type} ${object.metadata.name}`));
    await clock.advanceAsync(120_000);
    await create('c');
    await settle();
    expect(names()).toEqual(['a', 'c']);
    expect(seen).toEqual(['add a', 'add c']);
    await reader.stop();
  });

  test('a refresh of one namespace lists its objects alone, and the watch takes nothing back', async () => {
    const { clock, client, widgets, reader } = setUp();
    const create = (namespace: string, name: string) =>
      client.create(widgetKind, { metadata: { namespace, name }, spec: {} });
    const names = (namespace: string) => reader.listIn(namespace).map(({ metadata }) => metadata.name);
    await create('one', 'a');
    await create('two', 'b');
    await reader.start();
    await settle();
    const listed: (string | undefined)[] = [];
    const list = widgets.list.bind(widgets);
    widgets.list = (context, options) => {
      listed.push(options?.namespace);
      return list(context, options);
    };
    widgets.nextFault = () => 'deaf';
    await create('two', 'c');
    await settle();
    await create('one', 'd');
    await create('two', 'e');
    await client.delete(widgetKind, { namespace: 'one', name: 'a' });
    widgets.nextFault = () => undefined;
    await reader.refresh('one');
    expect([names('one'), names('two')]).toEqual([['d'], ['b', 'c']]);
    await Promise.all([reader.refresh('two'), reader.refresh('one')]);
    expect([names('one'), names('two')]).toEqual([['d'], ['b', 'c', 'e']]);
    expect(listed).toEqual(['one', 'two', 'one']);
    const seen: string[] = [];
    reader.informer.addHandler(({ type, object }) => seen.push(`${type} ${object.metadata.name}`));
    seen.length = 0;
    await clock.advanceAsync(120_000);
    expect(seen).toEqual([]);
    await create('one', 'f');
    await settle();
    expect(names('one')).toEqual(['d', 'f']);
    await reader.stop();
  });

  test('a caller reads its own write without a pause between them', async () => {
    const { client, reader, names, create } = setUp();
    await reader.start();
    const a = await create('a');
    await reader.refresh();
    expect(names()).toEqual(['a']);
    await client.update(widgetKind, { ...a, spec: { size: 7 } });
    await reader.refresh();
    expect(reader.get({ namespace: 'default', name: 'a' })?.spec.size).toBe(7);
    await client.delete(widgetKind, { name: 'a' });
    await reader.refresh();
    expect(names()).toEqual([]);
    await reader.stop();
  });

  test('a list that was under way when a write was acknowledged does not count for it, and calls share the next one', async () => {
    const { widgets, reader, names, create } = setUp();
    await reader.start();
    const list = widgets.list.bind(widgets);
    const gates: (() => void)[] = [];
    widgets.list = async (...parameters) => {
      const result = await list(...parameters);
      await new Promise<void>((resolve) => gates.push(resolve));
      return result;
    };
    const first = reader.refresh();
    await settle();
    await create('a');
    const later = [reader.refresh(), reader.refresh(), reader.refresh()];
    gates.shift()?.();
    await first;
    await settle();
    expect(gates).toHaveLength(1);
    expect(await settled(Promise.race(later))).toBe(false);
    gates.shift()?.();
    await Promise.all(later);
    expect(names()).toEqual(['a']);
    expect(gates).toEqual([]);
    await reader.stop();
  });

  test('an older list that arrives late takes nothing back', async () => {
    const { widgets, reader, names, create } = setUp();
    await reader.start();
    await settle();
    const list = widgets.list.bind(widgets);
    const gate = Promise.withResolvers<void>();
    widgets.list = async (...parameters) => {
      const result = await list(...parameters);
      await gate.promise;
      return result;
    };
    const refresh = reader.refresh();
    await settle();
    await create('a');
    await settle();
    expect(names()).toEqual(['a']);
    gate.resolve();
    await refresh;
    expect(names()).toEqual(['a']);
    await reader.stop();
  });

  test('a storage that fails or does not answer refuses the refresh, and the objects stay as they were', async () => {
    const { clock, widgets, reader, names, create } = setUp();
    await create('a');
    await reader.start();
    await settle();
    widgets.nextFault = () => 'error';
    await expect(reader.refresh()).rejects.toMatchObject({
      code: 'Unavailable',
      message: 'cannot decide without the current widgets: injected; retry when they can be read',
    });
    widgets.list = () => new Promise(() => undefined);
    const refused = expect(reader.refresh()).rejects.toMatchObject({
      code: 'Timeout',
      message: expect.stringContaining('no answer within 1 s'),
    });
    await clock.advanceAsync(1000);
    await refused;
    expect(names()).toEqual(['a']);
    await reader.stop();
  });

  test('a storage that was replaced by an older state is read from the beginning', async () => {
    const { clock, client, log, widgets, reader, names, create } = setUp();
    await create('a');
    await reader.start();
    await create('b');
    await settle();
    expect(names()).toEqual(['a', 'b']);
    const list = widgets.list.bind(widgets);
    widgets.list = async () => ({ items: [await client.get(widgetKind, { name: 'a' })], resourceVersion: '1' });
    await reader.refresh();
    expect(names()).toEqual(['a']);
    widgets.list = list;
    await clock.advanceAsync(30_000);
    expect(names()).toEqual(['a', 'b']);
    expect(log.version).toBe('2');
    await reader.stop();
  });
});
