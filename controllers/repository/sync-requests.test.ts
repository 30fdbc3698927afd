import { expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { keyText } from '../../src/resource/object/object.ts';
import { SyncRequests } from './sync-requests.ts';

const APPS = { namespace: 'default', name: 'apps' };

function requests() {
  const clock = new ManualClock();
  const woken: string[] = [];
  const self = new SyncRequests(clock);
  const end = self.subscribe((key) => woken.push(`${keyText(key)} ${clock.now() % 10_000}`));
  return { clock, woken, self, end };
}

test('a request wakes a repository at once, and many requests at most four times a second', () => {
  const { clock, woken, self } = requests();
  for (let count = 0; count < 1000; count += 1) {
    self.add(APPS, 'branches');
    clock.advance(1);
  }
  expect(woken).toEqual([0, 250, 500, 750, 1000].map((at) => `default/apps ${at}`));
  self.add({ ...APPS, name: 'other' }, 'branches');
  expect(woken.at(-1)).toBe('default/other 1000');
});

test('a request that was taken is served; a later one wakes again', () => {
  const { clock, woken, self } = requests();
  for (const scope of ['branches', 'everything', undefined] as const) self.add(APPS, scope);
  expect(self.take(APPS)).toEqual({ scope: 'everything', isWebhook: true });
  expect(self.take(APPS)).toBeUndefined();
  clock.advance(1000);
  // The second wake-up is for requests after the first; a controller that finds none has nothing to do.
  expect(woken).toHaveLength(2);
  self.add(APPS, undefined);
  expect(self.take(APPS)).toEqual({ scope: undefined, isWebhook: true });
  expect(woken).toHaveLength(3);
  clock.advance(1000);
  expect(clock.pending).toBe(0);
});

test('a request is by a webhook if one of those that wait is', () => {
  const { self } = requests();
  self.addOwn(APPS, 'branches');
  expect(self.take(APPS)).toEqual({ scope: 'branches', isWebhook: false });
  self.addOwn(APPS, 'branches');
  self.add(APPS, undefined);
  self.addOwn(APPS, 'branches');
  expect(self.take(APPS)).toEqual({ scope: 'branches', isWebhook: true });
});

test('a request that is not taken wakes once, and not after the end of the subscription', () => {
  const { clock, woken, self, end } = requests();
  self.add(APPS, 'branches');
  clock.advance(10_000);
  expect(woken).toHaveLength(1);
  end();
  self.add(APPS, 'branches');
  expect(woken).toHaveLength(1);
});

test('each reader of pull requests takes all that was reported, once', () => {
  const { self } = requests();
  self.addReview(APPS, { pull: { number: 1, isReview: true, isComment: false } });
  self.addReview(APPS, { pull: { number: 1, isReview: false, isComment: false, state: 'closed' } });
  self.addReview(APPS, { rerun: 'commit' });
  for (const reader of ['proposals', 'users'] as const) {
    expect(self.takeReview(APPS, reader)).toEqual({
      ...{ reruns: new Set(['commit']), mergeQueue: false },
      pulls: new Map([[1, { number: 1, isReview: true, isComment: false, state: 'closed' }]]),
    });
    expect(self.takeReview(APPS, reader)).toBeUndefined();
  }
});
