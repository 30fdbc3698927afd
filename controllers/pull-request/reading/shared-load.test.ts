import { expect, test } from 'vitest';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { ManualClock } from '../../../src/foundation/time/manual-clock.ts';
import { PullRequests } from '../pull-requests.ts';
import { MemoryForge } from '../testing-forge.ts';

test('the first read ends for a caller that ends, and not for the others that wait for it', async () => {
  const forge = new MemoryForge();
  await forge.open({ head: 'proposed/web/w1', base: 'main', title: '', body: '' });
  const list = forge.listUpdated.bind(forge);
  const { promise: gate, resolve } = Promise.withResolvers<void>();
  Object.assign(forge, {
    listUpdated: async (since: string, limit: number, signal: AbortSignal) => {
      await gate;
      signal.throwIfAborted();
      return list(since, limit);
    },
  });
  const pulls = new PullRequests(forge, 'main', new ManualClock());
  const first = new AbortController();
  const one = pulls.ofBranch('proposed/web/w1', first.signal).catch((error: unknown) => error);
  const other = pulls.ofBranch('proposed/web/w1', new AbortController().signal);
  other.catch(() => undefined);
  first.abort(new SluiceError('Timeout', 'the reconciliation of another proposal took too long'));
  resolve();
  expect(await one).toMatchObject({ code: 'Timeout' });
  expect((await other)?.number).toBe(1);
});
