import { describe, expect, test } from 'vitest';
import type { Clock } from '../../foundation/time/clock.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { hashObject } from './object-id.ts';
import type { NewObject } from './object-source.ts';
import { StagedObjects } from './staged-objects.ts';

let now = 0;
const clock: Clock = { now: () => now, monotonic: () => now, schedule: () => () => {} };
const MEGABYTE = 1024 * 1024;

function blob(content: string | Buffer): NewObject {
  const data = Buffer.from(content);
  return { oid: hashObject('blob', data), type: 'blob', data };
}

describe('staged objects', () => {
  test('keep the order of writing, each once, in copies', () => {
    const stage = new StagedObjects(clock);
    const [a, b] = [blob('a'), blob('b')];
    stage.add([a, b]);
    stage.add([b, a]);
    a.data.fill(0);
    expect(stage.waiting().map(({ data }) => Buffer.from(data).toString())).toEqual(['a', 'b']);
  });

  test('that were written are evicted, pending ones are not', () => {
    const time = new ManualClock();
    const stage = new StagedObjects(time);
    const [old, young, waiting] = [blob('old'), blob('young'), blob('waiting')];
    stage.add([old, young, waiting]);
    stage.onDisk([old]);
    time.advance(40_000);
    stage.onDisk([young]);
    time.advance(20_000);
    expect([old, young, waiting].map(({ oid }) => stage.get(oid) !== undefined)).toEqual([false, true, true]);
    time.advance(60_000);
    expect([young, waiting].map(({ oid }) => stage.get(oid) !== undefined)).toEqual([false, true]);
    expect(stage.waiting()).toHaveLength(1);
  });

  test('are limited by number and by size, and never evict pending ones', () => {
    const many = new StagedObjects(clock);
    const objects = Array.from({ length: 10_001 }, (_, number) => blob(`${number}`));
    many.add(objects.slice(0, 10_000));
    expect(many.full).toBe(false);
    many.add(objects);
    expect(many.full).toBe(true);
    expect(objects.every(({ oid }) => many.get(oid) !== undefined)).toBe(true);
    many.onDisk(objects);
    expect(many.full).toBe(false);
    expect(many.waiting()).toEqual([]);

    const large = new StagedObjects(clock);
    large.add([blob(Buffer.alloc(17 * MEGABYTE))]);
    expect(large.full).toBe(true);
  });

  test('stay readable after they reached the disk: small ones, those used last, in bounded memory', () => {
    const stage = new StagedObjects(clock);
    const objects = Array.from({ length: 80 }, (_, number) => blob(Buffer.alloc(200 * 1024, number)));
    const first = objects[0]?.oid ?? '';
    for (const object of objects) {
      stage.add([object]);
      stage.onDisk([object]);
      expect(stage.get(first)).toBeDefined();
    }
    const kept = objects.filter(({ oid }) => stage.get(oid) !== undefined).map((object) => objects.indexOf(object));
    expect(kept).toEqual([0, ...Array.from({ length: kept.length - 1 }, (_, index) => 81 - kept.length + index)]);
    expect(kept.length * 200 * 1024).toBeLessThan(8 * MEGABYTE);
    const large = blob(Buffer.alloc(MEGABYTE));
    stage.add([large]);
    expect(stage.get(large.oid)).toBeDefined();
    stage.onDisk([large]);
    expect(stage.get(large.oid)).toBeUndefined();
  });

  test('that reached the disk a moment ago need no check, older ones do', () => {
    const stage = new StagedObjects(clock);
    const object = blob('a');
    stage.add([object]);
    stage.onDisk([object]);
    now += 59_000;
    stage.add([object]);
    expect(stage.waiting()).toEqual([]);
    now += 2_000;
    stage.add([object]);
    expect(stage.waiting()).toHaveLength(1);
    stage.clear();
    expect(stage.get(object.oid)).toBeUndefined();
  });
});
