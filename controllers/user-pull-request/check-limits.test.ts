import { expect, test } from 'vitest';
import { Controller } from '../../src/controller/controller.ts';
import { systemClock } from '../../src/foundation/time/clock.ts';
import type { ObjectKey } from '../../src/resource/object/object.ts';
import { checkLimits, MAX_CONCURRENT } from './check-limits.ts';

test('checks that do not end keep no worker from merges, and none from other repositories', async () => {
  const begun: string[] = [];
  const controller = new Controller<ObjectKey>(
    {
      name: 'user-pull-request',
      sources: [],
      maxConcurrentReconciles: MAX_CONCURRENT,
      namespaceShare: { most: 3, mostFailing: 1 },
      limitsOf: checkLimits,
      reconcile: async ({ namespace, name }, { signal }) => {
        begun.push(`${namespace}/${name}`);
        if (/\d$/.test(name)) await new Promise((end) => signal.addEventListener('abort', end));
        return undefined;
      },
    },
    {
      clock: systemClock,
      random: Math.random,
      ...{ informer: () => undefined as never, release: () => undefined },
      ...{ onReconcile: () => undefined, onError: () => undefined, onChange: () => undefined },
    },
  );
  const add = (namespace: string, ...names: readonly string[]) => {
    for (const name of names) controller.enqueue({ namespace, name });
  };
  controller.startWorkers();
  add('a', 'apps.1', 'apps.2', 'apps.3', 'shop.1', 'web.1');
  add('b', 'apps.1', 'shop.1');
  add('c', 'apps.1');
  add('a', 'apps.merged', 'shop.merged', 'apps');
  add('c', 'apps.merged');
  await expect
    .poll(() => [...begun].sort())
    .toEqual(['a/apps', 'a/apps.1', 'a/apps.merged', 'a/shop.1', 'a/shop.merged', 'b/apps.1', 'c/apps.merged']);
  await controller.stop(0);
});
