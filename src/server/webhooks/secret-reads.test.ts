import { expect, test } from 'vitest';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { SecretReads } from './secret-reads.ts';

const [APPS, WEB, UNKNOWN] = ['apps', 'web', 'unknown'].map((name) => ({ namespace: 'default', name })) as [
  Key,
  Key,
  Key,
];
interface Key {
  readonly namespace: string;
  readonly name: string;
}

function open(read?: () => Promise<readonly string[]>) {
  const clock = new ManualClock();
  const asked: string[] = [];
  const reads = new SecretReads({
    clock,
    isRegistered: ({ name }) => name !== 'unknown',
    read: async ({ name }) => {
      asked.push(name);
      return read === undefined ? [`secret of ${name}`] : await read();
    },
  });
  const send = (key: Key, address = '10.0.0.1') => reads.secretsFor(key, address);
  const exhaust = async (address?: string) => {
    for (let sent = 0; sent < 200; sent += 1) await send(UNKNOWN, address);
    asked.splice(0);
  };
  return { clock, asked, reads, send, exhaust };
}

test('beyond its budget the messages of an address share one read for each registered repository', async () => {
  const { clock, asked, send, exhaust } = open();
  await exhaust();
  const sent = Array.from({ length: 3000 }, (_, index) => send([APPS, WEB, UNKNOWN][index % 3] as Key));
  expect(asked).toEqual([]);
  await clock.advanceAsync(250);
  const found = await Promise.all(sent);
  // Genuine messages among them are verified.
  expect(found.slice(0, 3)).toEqual([['secret of apps'], ['secret of web'], []]);
  expect(asked).toEqual(['apps', 'web']);
});

test('other addresses do not wait, and the budget grows with time', async () => {
  const { clock, asked, send, exhaust } = open();
  await exhaust('2001:db8::1');
  const waiting = send(APPS, '2001:db8:0:0:1:2:3:4');
  expect(asked).toEqual([]);
  expect(await send(APPS, '2001:db8:0:1::1')).toEqual(['secret of apps']);
  await clock.advanceAsync(1000);
  await waiting;
  expect(await send(WEB, '2001:db8::1')).toEqual(['secret of web']);
});

test('genuine messages cost nothing', async () => {
  const { asked, reads, send } = open();
  for (let sent = 0; sent < 1000; sent += 1) {
    await send(APPS);
    reads.refund('10.0.0.1');
  }
  expect(asked).toHaveLength(1000);
});

test('while the cluster does not respond, at most eight reads and those of one batch are in progress', async () => {
  const answer = Promise.withResolvers<readonly string[]>();
  const { clock, asked, send } = open(() => answer.promise);
  const sent = Array.from({ length: 100 }, () => send(APPS));
  await clock.advanceAsync(250);
  const later = Array.from({ length: 100 }, () => send(APPS));
  await clock.advanceAsync(250);
  expect(asked).toHaveLength(9);
  answer.resolve(['s']);
  expect(new Set((await Promise.all([...sent, ...later])).flat())).toEqual(new Set(['s']));
  expect(asked.length).toBeLessThanOrEqual(10);
});

test('a failed read concerns its own repository', async () => {
  let failing = true;
  const { clock, send } = open(async () => {
    if (failing) throw new Error('no answer');
    return ['s'];
  });
  const sent = Promise.allSettled(Array.from({ length: 9 }, () => send(APPS)));
  await clock.advanceAsync(250);
  expect((await sent).map(({ status }) => status)).toEqual(Array(9).fill('rejected'));
  failing = false;
  expect(await send(WEB)).toEqual(['s']);
});
