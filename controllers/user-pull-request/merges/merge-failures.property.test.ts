import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { runs } from '../../../test/support/runs.ts';
import { isPassedOver, MergeFailures, restsAfterFailure, type Standing } from './merge-failures.ts';
import { MAX_HELD_MS } from './merged-user-pull.ts';

const STEP_MS = 60_000;
const REFUSED = new SluiceError('InvalidInput', 'the host refuses the request');

interface Merge extends Standing {
  readonly number: number;
  readonly isRefused: boolean;
  /** When attempts failed. */
  readonly failedMs: number[];
  publishedMs?: number;
}

/** Merges of which some fail for good, and looks at them as those of the controller. */
class Queue {
  nowMs = 0;
  outage: SluiceError | undefined;
  readonly all: Merge[] = [];
  /** Reports that later ones pass one, with how many waited. */
  readonly reports: { readonly merge: Merge; readonly waiting: number; readonly isOutage: boolean }[] = [];

  add(isRefused: boolean): Merge {
    const merge = { number: this.all.length, isRefused, failedMs: [] };
    this.all.push(merge);
    return merge;
  }

  get waiting(): Merge[] {
    return this.all.filter(({ publishedMs }) => publishedMs === undefined);
  }

  look(waitMs: number): void {
    this.nowMs += waitMs;
    const ordered = this.waiting;
    if (ordered.every((one) => restsAfterFailure(one, this.nowMs))) return;
    const failures = new MergeFailures<Merge>();
    const report = () => {
      for (const [merge] of failures.takePassed())
        this.reports.push({ merge, waiting: ordered.length, isOutage: this.outage !== undefined });
    };
    for (const one of ordered) {
      const error = this.outage ?? (one.isRefused ? REFUSED : undefined);
      if (error !== undefined) {
        one.failedMs.push(this.nowMs);
        if (!failures.note(ordered, one, { error, nowMs: this.nowMs })) break;
        continue;
      }
      one.publishedMs = this.nowMs;
      delete one.failing;
      report();
    }
    report();
  }
}

const merges = fc.record({ type: fc.constant('merge' as const), isRefused: fc.boolean() });
const looks = fc.record({
  type: fc.constant('looks' as const),
  waitMs: fc.integer({ min: 1, max: STEP_MS }),
  times: fc.integer({ min: 1, max: 30 }),
});
const outages = fc.record({
  type: fc.constant('outage' as const),
  code: fc.constantFrom('Unavailable' as const, 'Timeout' as const, undefined),
});
type Step = typeof merges | typeof looks | typeof outages extends fc.Arbitrary<infer Value> ? Value : never;

/** `onMerge` is called before one is added. Then all are looked at for two hours. */
function run(steps: readonly Step[], onMerge?: (queue: Queue, step: { readonly isRefused: boolean }) => void): Queue {
  const queue = new Queue();
  for (const step of steps)
    if (step.type === 'merge') {
      onMerge?.(queue, step);
      queue.add(step.isRefused);
    } else if (step.type === 'looks') for (let time = 0; time < step.times; time += 1) queue.look(step.waitMs);
    else queue.outage = step.code && new SluiceError(step.code, 'the disk is full');
  queue.outage = undefined;
  for (let minute = 0; minute < 120; minute += 1) queue.look(STEP_MS);
  return queue;
}

test('merges that fail for good hold up a later one little longer than one of them, and not at all once they were passed over', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(merges, looks), { maxLength: 40 }), (steps) => {
      const due = new Map<number, number>();
      const { all } = run(steps, ({ waiting, nowMs, all }) => {
        const heldMs = MAX_HELD_MS + 3 * STEP_MS * waiting.filter(({ isRefused }) => isRefused).length;
        due.set(all.length, nowMs + STEP_MS + (waiting.every(isPassedOver) ? 0 : heldMs));
      });
      for (const { number, isRefused, publishedMs } of all)
        if (!isRefused) expect(publishedMs).toBeLessThanOrEqual(due.get(number) ?? 0);
    }),
    { numRuns: runs(5000) },
  );
});

test('later merges pass only those that have failed themselves for a minute or longer, and these are reported', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(merges, looks), { maxLength: 40 }), (steps) => {
      const { all, reports } = run(steps);
      for (const one of all) {
        const passedMs = Math.min(...all.slice(one.number + 1).flatMap(({ publishedMs }) => publishedMs ?? []));
        if (!one.isRefused) expect(one.failedMs).toEqual([]);
        else if (passedMs < Number.POSITIVE_INFINITY) {
          expect(passedMs - (one.failedMs[0] ?? passedMs)).toBeGreaterThanOrEqual(STEP_MS);
          expect(reports.map(({ merge }) => merge)).toContain(one);
        }
      }
    }),
    { numRuns: runs(5000) },
  );
});

test('in an outage none loses its place, and none is reported as long as another one waits; all are published after it', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(merges, looks, outages), { maxLength: 40 }), (steps) => {
      const { all, reports } = run(steps);
      const published = all
        .filter(({ isRefused }) => !isRefused)
        .map(({ publishedMs = Number.POSITIVE_INFINITY }) => publishedMs);
      expect(published).toEqual(published.toSorted((a, b) => a - b));
      expect(published).not.toContain(Number.POSITIVE_INFINITY);
      for (const { isOutage, waiting } of reports) if (isOutage) expect(waiting).toBe(1);
    }),
    { numRuns: runs(5000) },
  );
});

test('the time until an outage shows does not count for one that fails after it', () => {
  const queue = new Queue();
  for (const isRefused of [false, false, true, false]) queue.add(isRefused);
  queue.outage = new SluiceError('Unavailable', 'the disk is full');
  for (let minute = 0; minute < 11; minute += 1) queue.look(STEP_MS);
  queue.outage = undefined;
  for (let minute = 0; minute < 10; minute += 1) queue.look(STEP_MS);
  expect(queue.waiting.map(({ number }) => number)).toEqual([2, 3]);
  for (let minute = 0; minute < 2; minute += 1) queue.look(STEP_MS);
  expect(queue.waiting.map(({ number }) => number)).toEqual([2]);
});
