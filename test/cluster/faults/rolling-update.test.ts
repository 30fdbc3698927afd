import { expect, test } from 'vitest';
import { expectPublished } from '../support/expect-published.ts';
import { startLoad } from '../support/lifecycle-load.ts';
import { useInstallation } from '../support/use-installation.ts';

const UPDATES = 3;
const used = useInstallation();

test(`${UPDATES} rolling updates under load: no request fails for good, and no write is lost`, async () => {
  const { current } = used;
  await current.register('default');
  const load = startLoad(current, 'rolled');
  await load.progress(10);
  for (let update = 0; update < UPDATES; update += 1)
    // One more at first, as `maxUnavailable: 0` has it.
    for (const old of current.replicas) {
      const next = await current.add();
      await next.live();
      expect(await current.remove(old)).toBe(0);
      await current.whenReady();
      await load.progress(5);
    }
  const published = await load.stop();
  console.log(
    `rolling-update: ${2 * UPDATES} replicas replaced, ${load.steps} steps; failed attempts: ${JSON.stringify(Object.fromEntries(load.client.failures))}`,
  );
  expect(current.replicas).toHaveLength(2);
  await expectPublished(current, published);
});
