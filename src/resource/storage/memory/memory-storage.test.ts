import { describe, expect, test } from 'vitest';
import { ManualClock } from '../../../foundation/time/manual-clock.ts';
import type { RequestContext } from '../../object/request-context.ts';
import { type Widget, widgetKind } from '../../schema/testing.ts';
import { EventLog } from '../../watch/event-log.ts';
import { describeStorage } from '../storage.conformance.ts';
import { MemoryStorage } from './memory-storage.ts';

const context: RequestContext = { actor: { name: 'test' }, face: 'api' };

function widget(name: string, size = 1): Widget {
  return widgetKind.complete({ metadata: { name, namespace: 'default' }, spec: { size } });
}

describeStorage('MemoryStorage', { finalizers: true }, async () => {
  const clock = new ManualClock();
  const storage = new MemoryStorage(widgetKind, { clock, log: new EventLog({ clock, maxEvents: 50 }) });
  return {
    storage,
    sample: (index) => widget(`widget-${index}`),
    changeSpec: (object) => ({ ...object, spec: { ...object.spec, size: object.spec.size + 1 } }),
    changeStatus: (object) => ({ ...object, status: { ready: object.status?.ready !== true } }),
    async overflow() {
      for (let round = 0; round < 100; round += 1) await storage.create(context, widget(`filler-${round}`));
    },
  };
});

describe('MemoryStorage', () => {
  const clock = new ManualClock();
  const make = () => new MemoryStorage(widgetKind, { clock, log: new EventLog({ clock }) });

  test('makes a name from generateName, and requires one of the two', async () => {
    const storage = make();
    const made = await storage.create(context, widgetKind.complete({ metadata: { generateName: 'w-' }, spec: {} }));
    expect(made.metadata.name).toMatch(/^w-[0-9a-f]{5}$/);
    const nameless = { ...widget('x'), metadata: { name: '' } };
    await expect(storage.create(context, nameless)).rejects.toMatchObject({ code: 'InvalidInput' });
  });

  test('ignores a status and server-set metadata on create', async () => {
    const made = await make().create(context, {
      ...widget('a'),
      metadata: {
        name: 'a',
        namespace: 'default',
        uid: 'mine',
        generation: 9,
        deletionTimestamp: '2020-01-01T00:00:00Z',
      },
      status: { ready: true },
    });
    expect(made.status).toBeUndefined();
    expect(made.metadata.uid).not.toBe('mine');
    expect(made.metadata.generation).toBe(1);
    expect(made.metadata.deletionTimestamp).toBeUndefined();
  });
});
