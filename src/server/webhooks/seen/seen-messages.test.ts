import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ManualClock } from '../../../foundation/time/manual-clock.ts';
import { SeenFile } from './seen-file.ts';
import { SeenMessages } from './seen-messages.ts';

test('messages are remembered for a time, and at most so many', () => {
  const clock = new ManualClock();
  const seen = new SeenMessages({ clock, milliseconds: 1000, limit: 3 });
  expect([seen.add('a'), seen.add('a'), seen.add('b')]).toEqual([true, false, true]);
  clock.advance(999);
  expect(seen.add('a')).toBe(false);
  clock.advance(1);
  expect([seen.add('a'), seen.size]).toEqual([true, 1]);
  for (const id of ['c', 'd', 'e', 'f']) seen.add(id);
  expect(seen.size).toBe(3);
  expect([seen.add('f'), seen.add('c')]).toEqual([false, true]);
});

test('a clock that is set back removes entries with later times', () => {
  const now = { value: 1_000_000 };
  const clock = { now: () => now.value, monotonic: () => now.value, schedule: () => () => undefined };
  const seen = new SeenMessages({ clock, milliseconds: 1000, limit: 10 });
  seen.add('a');
  now.value -= 500_000;
  expect([seen.add('a'), seen.add('a')]).toEqual([true, false]);
});

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'sluice-seen-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

test('a restart knows the messages of before, without those that are too old or too many', () => {
  const clock = new ManualClock();
  const errors: unknown[] = [];
  const path = join(folder(), 'cache', 'webhooks.db');
  const files: SeenFile[] = [];
  onTestFinished(() => {
    for (const file of files) file.close();
  });
  // Without closing the one before: as after a kill.
  const start = (limit = 3) => {
    const file = new SeenFile(path, (error) => errors.push(error));
    files.push(file);
    return { file, seen: new SeenMessages({ clock, milliseconds: 1000, limit, file }) };
  };
  const first = start().seen;
  expect([first.add('a'), first.add('b')]).toEqual([true, true]);
  clock.advance(500);
  first.add('c');
  const second = start();
  expect([second.seen.add('b'), second.seen.add('c'), second.seen.add('a')]).toEqual([false, false, true]);
  clock.advance(600);
  const third = start(10);
  expect([third.seen.add('b'), third.seen.add('c')]).toEqual([true, false]);
  expect(
    third.file
      .load()
      .map(({ id }) => id)
      .sort(),
  ).toEqual(['a', 'b', 'c']);
  expect(errors).toEqual([]);
});

test('what a repetition finds expired is removed from the file too', () => {
  const clock = new ManualClock();
  const file = new SeenFile(join(folder(), 'webhooks.db'), (error) => expect.fail(String(error)));
  onTestFinished(() => file.close());
  const seen = new SeenMessages({ clock, milliseconds: 1000, limit: 10, file });
  seen.add('a');
  clock.advance(600);
  seen.add('b');
  clock.advance(600);
  expect([seen.add('b'), seen.size]).toEqual([false, 1]);
  expect(file.load().map(({ id }) => id)).toEqual(['b']);
});

test('a file that is damaged is replaced, and one that cannot be written loses only the memory of a restart', () => {
  const clock = new ManualClock();
  const errors: unknown[] = [];
  const path = join(folder(), 'webhooks.db');
  writeFileSync(path, 'no database '.repeat(1000));
  const open = (at: string) => new SeenFile(at, (error) => errors.push(error));
  const damaged = open(path);
  const seen = new SeenMessages({ clock, milliseconds: 1000, limit: 3, file: damaged });
  expect([seen.add('a'), seen.add('a')]).toEqual([true, false]);
  expect(errors).toHaveLength(1);
  expect(damaged.load()).toEqual([{ id: 'a', at: clock.now() }]);
  damaged.close();

  const unwritable = new SeenMessages({
    clock,
    milliseconds: 1000,
    limit: 3,
    file: open(join(path, 'below', 'a file')),
  });
  expect([unwritable.add('a'), unwritable.add('a')]).toEqual([true, false]);
  expect(errors.length).toBeGreaterThan(1);
});
