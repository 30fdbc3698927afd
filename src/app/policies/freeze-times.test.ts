import { expect, test } from 'vitest';
import type { InformerHandler } from '../../controller/informer.ts';
import { messageOf } from '../../foundation/sluice-error.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { type Freeze, freezeKind } from '../../resource/kinds/sluice/freeze.ts';
import type { Stored } from '../../resource/object/object.ts';
import { FreezeTimes } from './freeze-times.ts';

const START = Date.parse('2026-01-14T10:00:00Z');
const HOUR_MS = 3_600_000;

/** A process after the other, which have the memory and the objects in common. */
class Processes {
  readonly clock = new ManualClock(START);
  readonly memory = new Map<string, string>();
  readonly errors: string[] = [];
  readonly #objects = new Map<string, Stored<Freeze>>();
  #handle: InformerHandler<Freeze> | undefined;
  times: FreezeTimes | undefined;

  start(): void {
    const addHandler = (handle: InformerHandler<Freeze>) => {
      this.#handle = handle;
      for (const object of this.#objects.values()) handle({ type: 'add', object });
      return () => {
        this.#handle = undefined;
      };
    };
    this.times = new FreezeTimes({ addHandler }, this.clock, 'platform', this.memory, (error) =>
      this.errors.push(messageOf(error)),
    );
    this.times.settle();
  }

  stop(): void {
    this.times?.stop();
  }

  freeze(until?: string): void {
    const since = new Date(this.clock.now()).toISOString();
    const made = freezeKind.complete({ metadata: { name: 'core', namespace: 'apps' }, spec: { reason: 'r', until } });
    const metadata = { ...made.metadata, uid: since, resourceVersion: '1', creationTimestamp: since };
    const object = { ...made, metadata } as Stored<Freeze>;
    this.#objects.set('core', object);
    this.#handle?.({ type: 'add', object });
  }

  end(): void {
    const object = this.#objects.get('core');
    this.#objects.delete('core');
    if (object !== undefined) this.#handle?.({ type: 'delete', object });
  }

  /** Beginnings and ends of those that ended, in hours since the start. */
  ended(): readonly (readonly [number, number])[] {
    const hours = (ms: number) => (ms - START) / HOUR_MS;
    return (this.times?.in(['apps']) ?? []).map(({ since, until = 0 }) => [hours(Date.parse(since)), hours(until)]);
  }

  get noted(): number {
    return this.memory.size;
  }
}

test('a freeze that a process saw end is known to the next ones for a day, with the time of its end', () => {
  const at = new Processes();
  at.start();
  at.freeze();
  at.clock.advance(HOUR_MS);
  at.end();
  expect(at.ended()).toEqual([[0, 1]]);
  at.stop();
  at.clock.advance(HOUR_MS);
  at.start();
  expect(at.ended()).toEqual([[0, 1]]);
  at.stop();
  at.clock.advance(24 * HOUR_MS);
  at.start();
  expect(at.ended()).toEqual([]);
  expect(at.noted).toBe(0);
});

test('one that was deleted while no process ran counts until the next one starts, or another one has its name', () => {
  const at = new Processes();
  at.start();
  at.freeze();
  at.stop();
  at.clock.advance(HOUR_MS);
  at.end();
  at.clock.advance(HOUR_MS);
  at.start();
  expect(at.ended()).toEqual([[0, 2]]);
  at.freeze();
  at.stop();
  at.end();
  at.clock.advance(HOUR_MS);
  at.freeze();
  at.clock.advance(HOUR_MS);
  at.start();
  expect(at.ended()).toEqual([
    [0, 2],
    [2, 3],
  ]);
});

test('one with an end counts until that, also if it is deleted later or the end is changed to a time that has passed', () => {
  const at = new Processes();
  at.start();
  at.freeze('2026-01-14T11:00:00Z');
  at.clock.advance(2 * HOUR_MS);
  expect(at.ended()).toEqual([]);
  at.stop();
  at.end();
  at.start();
  expect(at.ended()).toEqual([[0, 1]]);
  at.freeze();
  at.clock.advance(2 * HOUR_MS);
  at.freeze('2026-01-14T13:00:00Z');
  expect(at.ended()).toEqual([
    [0, 1],
    [2, 4],
  ]);
});

test('a damaged note is reported and removed, and the others are kept', () => {
  const at = new Processes();
  at.start();
  at.freeze();
  at.clock.advance(HOUR_MS);
  at.end();
  at.stop();
  const notes = ['{"name":"core","names', '', 'null', '{}', '{"name":"core","namespace":"apps","until":"x"}'];
  for (const [index, text] of notes.entries()) at.memory.set(`apps/damaged${index}`, text);
  at.start();
  expect(at.ended()).toEqual([[0, 1]]);
  expect(at.noted).toBe(1);
  expect(at.errors).toHaveLength(notes.length);
  expect(at.errors[0]).toContain('the note about freeze "apps/damaged0" is damaged and is ignored');
});
