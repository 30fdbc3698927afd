import { expect, test } from 'vitest';
import { ManualClock } from '../foundation/time/manual-clock.ts';
import { podKind } from '../resource/kinds/core/pod.ts';
import { Registry } from '../resource/storage/registry.ts';
import { EventLog } from '../resource/watch/event-log.ts';
import { registerPods } from './pods.ts';

test('pods can be listed and not created', async () => {
  const clock = new ManualClock();
  const registry = new Registry();
  registerPods(registry, { log: new EventLog({ clock }), clock });
  const storage = registry.find('', 'v1', podKind.plural);
  const { items } = (await storage?.list({ actor: { name: 'anna' }, face: 'api' }, { namespace: 'any' })) ?? {};
  expect(items).toEqual([]);
  expect(storage?.verbs).toEqual(['get', 'list', 'watch']);
});
