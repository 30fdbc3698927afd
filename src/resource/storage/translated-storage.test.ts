import { describe, expect, test } from 'vitest';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { eventKind } from '../kinds/core/event.ts';
import { type EventV1, eventV1Kind, eventV1Translation } from '../kinds/events/event-v1.ts';
import type { RequestContext } from '../object/request-context.ts';
import type { Kind } from '../schema/kind.ts';
import { type Widget, widgetKind } from '../schema/testing.ts';
import { fieldSelector } from '../selector/field-selector.ts';
import { EventLog } from '../watch/event-log.ts';
import { MemoryStorage } from './memory/memory-storage.ts';
import { describeStorage } from './storage.conformance.ts';
import { TranslatedStorage } from './translated-storage.ts';

const context: RequestContext = { actor: { name: 'test' }, face: 'api' };
const key = { namespace: 'default', name: 'a' };

function event(name: string, about = 'web'): EventV1 {
  const metadata = { name, namespace: 'default' };
  return eventV1Kind.complete({ metadata, regarding: { kind: 'ConfigMap', name: about }, note: 'it grew' });
}

function open() {
  const clock = new ManualClock();
  const kept = new MemoryStorage(eventKind, { clock, log: new EventLog({ clock }) });
  return { kept, shown: new TranslatedStorage(eventV1Kind, kept, eventV1Translation) };
}

/** The widgets of another version. */
const newerKind: Kind<Widget> = { ...widgetKind, version: 'v2', apiVersion: 'test.sluice.dev/v2' };

function newer(name: string): Widget {
  const widget = widgetKind.complete({ metadata: { name, namespace: 'default' }, spec: {} });
  return { ...widget, apiVersion: newerKind.apiVersion };
}

describeStorage('TranslatedStorage', { finalizers: true }, async () => {
  const clock = new ManualClock();
  const widgets = new MemoryStorage(widgetKind, { clock, log: new EventLog({ clock, maxEvents: 50 }) });
  const storage = new TranslatedStorage(newerKind, widgets, {
    fromStored: (object) => ({ ...object, apiVersion: newerKind.apiVersion }),
    toStored: (object) => ({ ...object, apiVersion: widgetKind.apiVersion }),
  });
  return {
    storage,
    sample: (index) => newer(`widget-${index}`),
    changeSpec: (object) => ({ ...object, spec: { ...object.spec, size: object.spec.size + 1 } }),
    changeStatus: (object) => ({ ...object, status: { ready: object.status?.ready !== true } }),
    async overflow() {
      for (let round = 0; round < 100; round += 1) await storage.create(context, newer(`filler-${round}`));
    },
  };
});

describe('TranslatedStorage', () => {
  test('shows the very objects that are kept, whichever side wrote them', async () => {
    const { kept, shown } = open();
    const made = await shown.create(context, event('a'));
    const core = await kept.get(context, key);
    expect(core).toMatchObject({ apiVersion: 'v1', involvedObject: { name: 'web' }, message: 'it grew' });
    expect(core.metadata).toBe(made.metadata);
    await kept.update(context, { ...core, message: 'it grew again' });
    expect(await shown.get(context, key)).toMatchObject({ apiVersion: 'events.k8s.io/v1', note: 'it grew again' });
    await shown.delete(context, key);
    await expect(kept.get(context, key)).rejects.toMatchObject({ code: 'NotFound' });
  });

  test('finds objects by the fields of the form that is shown, and by no others', async () => {
    const { shown } = open();
    for (const name of ['a', 'b']) await shown.create(context, event(name, `about-${name}`));
    const find = (text: string) => shown.list(context, { fieldSelector: fieldSelector(text) });
    const { items } = await find('regarding.name=about-b,metadata.namespace=default');
    expect(items.map(({ metadata }) => metadata.name)).toEqual(['b']);
    for (const path of ['involvedObject.name', 'note']) {
      await expect(find(`${path}=about-b`)).rejects.toMatchObject({ code: 'BadRequest' });
      const selector = { fieldSelector: fieldSelector(`${path}=x`) };
      const { signal } = new AbortController();
      expect(() => shown.watch(context, { ...selector, resourceVersion: '0', signal })).toThrow(
        `"${path}" is not a known field selector`,
      );
    }
  });

  test('readers and watchers share the served objects', async () => {
    const { shown } = open();
    const end = new AbortController();
    const { resourceVersion } = await shown.list(context);
    const selection = { resourceVersion, signal: end.signal, fieldSelector: fieldSelector('regarding.name=web') };
    const watches = [1, 2].map(() => shown.watch(context, selection)[Symbol.asyncIterator]());
    const made = await shown.create(context, event('a'));
    await shown.create(context, event('b', 'other'));
    await shown.delete(context, key);
    const seen = await Promise.all(watches.map(async (watch) => [await watch.next(), await watch.next()]));
    end.abort();
    const objects = seen.map((results) =>
      results.map(({ value }) => (value?.type === 'BOOKMARK' ? value : value?.object)),
    );
    expect(seen.map((results) => results.map(({ value }) => value?.type))).toEqual([
      ['ADDED', 'DELETED'],
      ['ADDED', 'DELETED'],
    ]);
    expect(objects[0]?.[0]).toBe(made);
    for (const place of [0, 1]) expect(objects[0]?.[place]).toBe(objects[1]?.[place]);
  });
});
