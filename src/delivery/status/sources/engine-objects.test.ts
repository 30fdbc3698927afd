import { expect, test } from 'vitest';
import { type Clock, systemClock } from '../../../foundation/time/clock.ts';
import type { Client } from '../../../resource/client/client.ts';
import { deliveryTargetKind } from '../../../resource/kinds/sluice/delivery/delivery-target.ts';
import { EngineObjects } from './engine-objects.ts';

test('an engine that cannot be read stays unreachable when the clock is set back', async () => {
  let now = Date.UTC(2026, 0, 2);
  let running = 0;
  const clock: Clock = {
    ...systemClock,
    now: () => now,
    monotonic: () => running,
    schedule: (_delay, action) => systemClock.schedule(5, action),
  };
  let isBroken = false;
  const broken = Promise.withResolvers<never>();
  broken.promise.catch(() => undefined);
  const client = {
    list: async () => {
      if (isBroken) throw new Error('connection refused');
      return { items: [], resourceVersion: '1' };
    },
    watch: () => ({ [Symbol.asyncIterator]: () => ({ next: () => broken.promise }) }),
  } as unknown as Client;
  const target = deliveryTargetKind.complete({
    metadata: { name: 'edge' },
    spec: { selector: {}, git: { repo: 'https://git.example.com/a/site.git' }, engine: { type: 'ArgoCD' } },
  });
  let changes = 0;
  const onChange = () => {
    changes += 1;
  };
  const status = new EngineObjects(target, { client, clock, cluster: 'the cluster', onChange });
  try {
    const request = { commits: async () => [], signal: new AbortController().signal };
    expect((await status.reports(request)).reports).toEqual([]);
    const before = changes;
    isBroken = true;
    broken.reject(new Error('connection refused'));
    await expect.poll(() => changes).toBeGreaterThan(before);
    // A short outage changes nothing.
    expect((await status.reports(request)).reports).toEqual([]);
    now -= 3_600_000;
    running += 90_000;
    await expect(status.reports(request)).rejects.toThrow('connection refused');
  } finally {
    await status.close();
  }
});
