import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { KeyedMutex } from './mutex.ts';

test('sections of one key run one after the other, those of other keys concurrently, and nothing is retained', async () => {
  const mutex = new KeyedMutex();
  const log: string[] = [];
  const section = (name: string) => async () => {
    log.push(`${name} begins`);
    await setImmediate();
    log.push(`${name} ends`);
    if (name === 'fails') throw new Error('a section failed');
  };
  const failed = expect(mutex.run('a', section('fails'))).rejects.toThrow('a section failed');
  await Promise.all([failed, mutex.run('a', section('second')), mutex.run('b', section('other'))]);
  expect(log.slice(0, 2)).toEqual(['fails begins', 'other begins']);
  expect(log.filter((line) => !line.startsWith('other'))).toEqual([
    ...['fails begins', 'fails ends', 'second begins', 'second ends'],
  ]);
  expect(mutex.size).toBe(0);
});
