import { expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { keyText } from '../../src/resource/object/object.ts';
import { ForgeHints } from './forge-hints.ts';

const APPS = { namespace: 'default', name: 'apps' };
const OTHER = { namespace: 'team', name: 'apps' };

function hints() {
  const clock = new ManualClock();
  const woken: string[] = [];
  const self = new ForgeHints(clock);
  const end = self.subscribe((key) => woken.push(`${keyText(key)} ${clock.now() % 10_000}`));
  return { clock, woken, self, end };
}

test('many hints wake a repository at most four times a second, and equal ones are one', () => {
  const { clock, woken, self } = hints();
  for (let count = 0; count < 1000; count += 1) {
    self.add(APPS, { kind: 'review', pullRequest: 7 });
    clock.advance(1);
  }
  expect(woken).toEqual([0, 250, 500, 750, 1000].map((at) => `default/apps ${at}`));
  expect(self.take(APPS)).toEqual({ isAll: false, hints: [{ kind: 'review', pullRequest: 7 }] });
  expect(self.take(APPS)).toBeUndefined();
});

test('hints of one repository say nothing about another one', () => {
  const { clock, self } = hints();
  self.add(APPS, { kind: 'comment', pullRequest: 1 });
  expect([self.has(APPS), self.has(OTHER)]).toEqual([true, false]);
  expect([self.lastWebhookAt(APPS), self.lastWebhookAt(OTHER)]).toEqual([clock.now(), undefined]);
  self.identify(APPS, '12');
  expect([self.idOf(APPS), self.idOf(OTHER)]).toEqual(['12', undefined]);
  self.forget(APPS);
  expect([self.take(APPS), self.lastWebhookAt(APPS), self.idOf(APPS)]).toEqual([undefined, undefined, undefined]);
});

test('a hint without a number, and too many hints, are about all pull requests', () => {
  const { self } = hints();
  self.add(APPS, { kind: 'pull-request', pullRequest: 1 });
  self.add(APPS, { kind: 'check', commit: 'a' });
  expect(self.take(APPS)).toEqual({
    isAll: true,
    hints: [
      { kind: 'pull-request', pullRequest: 1 },
      { kind: 'check', commit: 'a' },
    ],
  });
  for (let number = 1; number <= 1000; number += 1) self.add(APPS, { kind: 'pull-request', pullRequest: number });
  expect(self.take(APPS)).toEqual({ isAll: true, hints: [] });
});

test('a hint after the last take wakes again, and none after the end of the subscription', () => {
  const { clock, woken, self, end } = hints();
  self.add(APPS, { kind: 'review', pullRequest: 1 });
  self.take(APPS);
  self.add(APPS, { kind: 'review', pullRequest: 1 });
  clock.advance(1000);
  expect(woken).toHaveLength(2);
  end();
  self.add(APPS, { kind: 'review', pullRequest: 2 });
  clock.advance(1000);
  expect(woken).toHaveLength(2);
});
