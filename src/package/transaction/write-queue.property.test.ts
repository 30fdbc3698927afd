import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { Limiter } from '../../foundation/concurrency/limiter.ts';
import { Mutex } from '../../foundation/concurrency/mutex.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { PushRefusedError, unknownOutcome } from '../../git/errors.ts';
import type { RefUpdate } from '../../git/git-repository.ts';
import { expectedValue, movedError, newValue } from '../../git/refs/ref-updates.ts';
import { RequestGroup } from '../../resource/object/request-group.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import { SharedStepsError } from '../plan/shared-commit.ts';
import type { DecidedStep } from '../plan/step-objects.ts';
import type { NewMark } from '../trust/ledger/trust-ledger.ts';
import { MAX_SHARED_WRITES, MAX_WRITES, WriteQueue, type WriteTarget } from './write-queue.ts';

const MAIN = 'refs/heads/main';

/** How a server reports that a rule refused: with the ref that it refused, or without. */
type Words = 'named' | 'unnamed';

/** A remote that is a map of refs, what is known of it here, and what went over the wire. */
class Remote implements WriteTarget {
  readonly main = MAIN;
  readonly unconfirmedRefs = new Set<string>();
  readonly refs = new Map([[MAIN, 'm0']]);
  readonly known = new Map(this.refs);
  /** Every value that main had, in order. */
  readonly mains = ['m0'];
  /** Every request, with its updates. */
  readonly requests: (readonly RefUpdate[])[] = [];
  refuses: (ref: string) => boolean = () => false;
  words: Words = 'named';
  /** Before the n-th request is handled, another writer does something, or the connection breaks. */
  readonly meanwhile = new Map<number, () => void>();
  lost: 'before' | 'after' | undefined;
  /** Marks of what was carried out, with the refs as they were shown when they were raised. */
  readonly raised: { readonly marks: readonly NewMark[]; readonly durable: boolean; readonly known: number }[] = [];
  readonly mutex = new Mutex();

  ref(name: string): string | undefined {
    return this.known.get(name);
  }

  revision(name: string): PackageRevision {
    return { name } as PackageRevision;
  }

  async commit(updates: readonly RefUpdate[]): Promise<void> {
    this.requests.push(updates);
    await setImmediate();
    this.meanwhile.get(this.requests.length)?.();
    const { lost } = this;
    this.lost = undefined;
    if (lost === 'before') throw this.#unknown(updates);
    for (const update of updates) {
      const actual = this.refs.get(update.ref) ?? null;
      if (actual !== expectedValue(update)) throw movedError(update.ref, expectedValue(update), actual);
    }
    const refused = updates.find(({ ref }) => this.refuses(ref))?.ref;
    if (refused !== undefined) {
      const ref = this.words === 'named' ? refused : undefined;
      throw new PushRefusedError({ ref }, 'a rule');
    }
    for (const update of updates) this.set(update.ref, newValue(update));
    if (lost === 'after') throw this.#unknown(updates);
  }

  raiseMarks(marks: readonly NewMark[], durable: boolean): void {
    this.raised.push({ marks, durable, known: this.known.size });
  }

  async recorded(): Promise<void> {
    // The marks above are all that there is.
  }

  async publish(updates: readonly RefUpdate[]): Promise<void> {
    for (const update of updates) {
      const value = newValue(update);
      if (value === null) this.known.delete(update.ref);
      else this.known.set(update.ref, value);
    }
  }

  async refetch(): Promise<void> {
    await setImmediate();
    this.known.clear();
    for (const [ref, value] of this.refs) this.known.set(ref, value);
    this.unconfirmedRefs.clear();
  }

  set(ref: string, value: string | null): void {
    if (value === null) this.refs.delete(ref);
    else this.refs.set(ref, value);
    if (ref === MAIN && value !== null) this.mains.push(value);
  }

  #unknown(updates: readonly RefUpdate[]): SluiceError {
    for (const { ref } of updates) this.unconfirmedRefs.add(ref);
    return unknownOutcome(new SluiceError('Unavailable', 'the connection broke'));
  }
}

const NO_PAUSE = { pause: () => setImmediate() };

function draftRef(number: number): string {
  return `refs/heads/drafts/p${number}/v1`;
}

function markOf(name: string): NewMark {
  return { scope: { repository: 'id', package: name, workspace: 'v1' }, sequence: 1, digest: name, proven: true };
}

function create(queue: WriteQueue, number: number, revokes = false): Promise<unknown> {
  const plan = {
    ...{ marks: [markOf(`d${number}`)], revokes },
    name: `d${number}`,
    updates: [{ type: 'create', ref: draftRef(number), new: `d${number}` } as const],
  };
  return queue.add({ package: `p${number}`, wholePackage: true, urgent: false, plan });
}

function planOf(number: number, head: string, commit: string) {
  return {
    ...{ marks: [markOf(`t${number}`)], revokes: false },
    name: `t${number}`,
    updates: [
      { type: 'update', ref: MAIN, old: head, new: commit } as const,
      { type: 'create', ref: `refs/tags/p${number}/v1`, new: commit } as const,
    ],
  };
}

/** Moves main, and makes a tag at the same commit. */
function publish(queue: WriteQueue, number: number, signal?: AbortSignal): Promise<unknown> {
  const plan = async (head = '') => {
    await setImmediate();
    return planOf(number, head, `${head}<t${number}`);
  };
  return queue.add({ package: `p${number}`, wholePackage: true, urgent: true, plan, signal });
}

/** Why a publication of a group fails before it is sent. */
interface Unfit {
  readonly refused: ReadonlySet<number>;
  readonly tooLarge: ReadonlySet<number>;
}

/** Moves main to a commit with others of the group, such as `t1+t2`. */
function share(
  queue: WriteQueue,
  number: number,
  group: RequestGroup,
  { refused, tooLarge }: Unfit = { refused: new Set(), tooLarge: new Set() },
): Promise<unknown> {
  const decide = async (head = '') => {
    await setImmediate();
    if (refused.has(number)) throw new SluiceError('Refused', 'a gate is closed');
    return { number, head, revision: { name: `t${number}` } } as unknown as DecidedStep;
  };
  const plan = async (steps: readonly DecidedStep[]) => {
    const decided = steps as unknown as readonly { readonly number: number; readonly head: string }[];
    const [first] = decided;
    const commit = `${first?.head}<${decided.map((one) => `t${one.number}`).join('+')}`;
    const excess = new SluiceError('LimitExceeded', 'its statement is too large');
    const excessive = steps.filter((_, at) => tooLarge.has(decided[at]?.number ?? -1));
    if (excessive.length > 0) throw new SharedStepsError(new Map(excessive.map((step) => [step, excess])));
    return decided.map((one) => planOf(one.number, one.head, commit));
  };
  const alone = async (head?: string) => {
    const [only] = await plan([await decide(head)]).catch((error: Error) => {
      throw error instanceof SharedStepsError ? [...error.causes.values()][0] : error;
    });
    return only;
  };
  const shared = { group, decide, plan };
  return queue.add({ package: `p${number}`, wholePackage: true, urgent: true, plan: alone, shared });
}

test('operations that are ready together share a push, and the first one does not wait', async () => {
  const remote = new Remote();
  const queue = new WriteQueue(remote, NO_PAUSE);
  await Promise.all(Array.from({ length: 41 }, (_, number) => (number % 2 === 0 ? create : publish)(queue, number)));
  expect(remote.requests.length).toBeLessThanOrEqual(2);
  expect(remote.mains.at(-1)?.split('<')).toHaveLength(21);
});

test('a request waits for the writes that are being planned, and an urgent write for none', async () => {
  const remote = new Remote();
  const planned = Promise.withResolvers<void>();
  const queue = new WriteQueue(remote, { ...NO_PAUSE, planned: () => planned.promise });
  const drafts = [create(queue, 0)];
  await setImmediate();
  drafts.push(create(queue, 1));
  await setImmediate();
  expect(remote.requests).toHaveLength(0);
  planned.resolve();
  await Promise.all(drafts);
  expect(remote.requests).toHaveLength(1);

  const busy = new WriteQueue(remote, { ...NO_PAUSE, planned: () => new Promise(() => undefined) });
  const waiting = create(busy, 2);
  await setImmediate();
  expect(remote.requests).toHaveLength(1);
  await Promise.all([waiting, publish(busy, 3)]);
  expect(remote.requests).toHaveLength(2);
});

test('one culprit that no error names costs the others a number of requests that grows with the logarithm', async () => {
  for (const size of [8, 64]) {
    const remote = new Remote();
    remote.words = 'unnamed';
    remote.refuses = (ref) => ref === draftRef(5);
    const queue = new WriteQueue(remote, NO_PAUSE);
    const all = await Promise.allSettled(Array.from({ length: size }, (_, number) => create(queue, number)));
    expect(all.map(({ status }) => status).filter((status) => status === 'rejected')).toHaveLength(1);
    expect(all[5]?.status).toBe('rejected');
    expect(remote.requests.length).toBeLessThanOrEqual(2 * Math.log2(size) + 2);
  }
});

test('a lifecycle step waits for two requests at most, and the other operations are not starved', async () => {
  const remote = new Remote();
  const queue = new WriteQueue(remote, NO_PAUSE);
  const drafts = Array.from({ length: 1000 }, (_, number) => create(queue, number));
  await drafts[0];
  const before = remote.requests.length;
  await publish(queue, 2000);
  expect(remote.requests.length - before).toBeLessThanOrEqual(2);
  await Promise.all(drafts);
  expect(remote.requests.length).toBeLessThanOrEqual(1000 / MAX_WRITES + 3);
});

test('steps without end do not block a draft', async () => {
  const remote = new Remote();
  const queue = new WriteQueue(remote, NO_PAUSE);
  let published = 0;
  let made = false;
  const busy = async (worker: number) => {
    for (let round = 0; !made; round += 1) {
      await publish(queue, 1000 * worker + round);
      published += 1;
    }
  };
  const workers = Array.from({ length: 3 * MAX_WRITES }, (_, worker) => busy(worker + 1));
  await setImmediate();
  const before = remote.requests.length;
  await create(queue, 0);
  expect(remote.requests.length - before).toBeLessThanOrEqual(2);
  made = true;
  await Promise.all(workers);
  expect(published).toBeGreaterThan(0);
});

test('a search for culprits does not hold back a step', async () => {
  const remote = new Remote();
  remote.words = 'unnamed';
  remote.refuses = (ref) => ref.startsWith('refs/heads/drafts/');
  const queue = new WriteQueue(remote, NO_PAUSE);
  const drafts = Promise.allSettled(Array.from({ length: 64 }, (_, number) => create(queue, number)));
  while (remote.requests.length < 3) await setImmediate();
  const before = remote.requests.length;
  await publish(queue, 100);
  expect(remote.requests.length - before).toBeLessThanOrEqual(3);
  expect((await drafts).every(({ status }) => status === 'rejected')).toBe(true);
  expect(remote.requests.length).toBeLessThanOrEqual(2 * 64 + 2);
});

test('after a request with an unknown outcome, its refs are read before they are changed again', async () => {
  for (const lost of ['before', 'after'] as const) {
    const remote = new Remote();
    remote.lost = lost;
    const queue = new WriteQueue(remote, NO_PAUSE);
    await expect(publish(queue, 1)).rejects.toMatchObject({ details: { outcome: 'unknown' } });
    await publish(queue, 2);
    expect(remote.requests).toHaveLength(2);
    expect(remote.refs.get(MAIN)).toBe(lost === 'before' ? 'm0<t2' : 'm0<t1<t2');
  }
});

test('what still waits when the repository is closed fails with that reason, and is not committed', async () => {
  const remote = new Remote();
  const queue = new WriteQueue(remote, NO_PAUSE);
  const first = create(queue, 0);
  while (remote.requests.length < 1) await setImmediate();
  const waiting = [create(queue, 1), publish(queue, 2)];
  const closed = queue.close(new ManualClock());
  const results = await Promise.allSettled([first, ...waiting, create(queue, 3)]);
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'rejected']);
  expect(remote.requests).toHaveLength(1);
  await closed;
});

test('what is left of a request that is refused while the repository is closed fails with that reason', async () => {
  const remote = new Remote();
  remote.words = 'unnamed';
  remote.refuses = (ref) => ref === draftRef(1);
  const queue = new WriteQueue(remote, NO_PAUSE);
  const first = create(queue, 0);
  while (remote.requests.length < 1) await setImmediate();
  const rest = Array.from({ length: 8 }, (_, number) => create(queue, number + 1));
  await first;
  remote.meanwhile.set(2, () => void queue.close(new ManualClock()));
  const results = await Promise.allSettled(rest);
  expect(results.map((result) => result.status === 'rejected' && result.reason.message)).toEqual(
    rest.map(() => expect.stringContaining('being closed')),
  );
  expect(remote.requests).toHaveLength(2);
});

test('a write that was committed and cannot be shown is not reported as failed', async () => {
  const remote = new Remote();
  remote.publish = async () => {
    throw new SluiceError('Corrupt', 'an object is damaged');
  };
  const queue = new WriteQueue(remote, NO_PAUSE);
  await expect(create(queue, 0)).rejects.toMatchObject({ code: 'Unavailable', details: { outcome: 'unknown' } });
  expect(remote.refs.get(draftRef(0))).toBe('d0');
});

test('marks are raised after the request and before it is published, durably if a write withdraws something', async () => {
  for (const revokes of [false, true]) {
    const remote = new Remote();
    const queue = new WriteQueue(remote, NO_PAUSE);
    const first = create(queue, 0);
    while (remote.requests.length < 1) await setImmediate();
    expect(remote.raised).toEqual([]);
    await Promise.all([first, create(queue, 1), create(queue, 2, revokes), publish(queue, 3)]);
    expect(remote.raised).toEqual([
      { marks: [markOf('d0')], durable: false, known: 1 },
      { marks: expect.arrayContaining(['d1', 'd2', 't3'].map(markOf)), durable: revokes, known: 2 },
    ]);
  }
});

test('a write that loses every race for the main branch is tried six times, or until its request ends', async () => {
  for (const aborts of [false, true]) {
    const remote = new Remote();
    const request = new AbortController();
    for (let at = 1; at <= 20; at += 1)
      remote.meanwhile.set(at, () => {
        remote.set(MAIN, `${remote.refs.get(MAIN)}<o${at}`);
        if (aborts && at === 2) request.abort();
      });
    const pauses: number[] = [];
    const pause = async (milliseconds: number) => void pauses.push(milliseconds);
    const queue = new WriteQueue(remote, { pause });
    await expect(publish(queue, 1, request.signal)).rejects.toMatchObject({ code: 'Conflict' });
    expect(remote.requests).toHaveLength(aborts ? 2 : 6);
    expect(pauses).toHaveLength(aborts ? 1 : 5);
  }
});

test('what was refused, or is not known to be carried out, raises no mark', async () => {
  const remote = new Remote();
  remote.refuses = (ref) => ref === draftRef(0);
  const queue = new WriteQueue(remote, NO_PAUSE);
  await expect(create(queue, 0)).rejects.toMatchObject({ code: 'PushRefused' });
  remote.lost = 'before';
  await expect(create(queue, 1)).rejects.toMatchObject({ code: 'Unavailable' });
  expect(remote.raised).toEqual([]);
});

test('a write whose marks cannot be kept is not acknowledged', async () => {
  const remote = new Remote();
  remote.raiseMarks = () => {
    throw new SluiceError('Unavailable', 'the disk is full');
  };
  const queue = new WriteQueue(remote, NO_PAUSE);
  await expect(create(queue, 0, true)).rejects.toMatchObject({ code: 'Unavailable', details: { outcome: 'unknown' } });
});

test('a write is acknowledged once its marks are where they have to be', async () => {
  const remote = new Remote();
  const stored = Promise.withResolvers<void>();
  remote.recorded = () => stored.promise;
  const queue = new WriteQueue(remote, NO_PAUSE);
  let acknowledged = false;
  const write = create(queue, 0, true).then(() => {
    acknowledged = true;
  });
  while (remote.requests.length < 1) await setImmediate();
  for (let turn = 0; turn < 10; turn += 1) await setImmediate();
  expect(acknowledged).toBe(false);
  stored.resolve();
  await write;
});

test('a write that is committed and not recorded is seen by those who repeat it', async () => {
  const remote = new Remote();
  const unknown = { details: { outcome: 'unknown' } };
  remote.recorded = () => Promise.reject(new SluiceError('Unavailable', 'the cluster does not respond', unknown));
  const queue = new WriteQueue(remote, NO_PAUSE);
  await expect(create(queue, 1, true)).rejects.toMatchObject({ details: { outcome: 'unknown' } });
  expect(remote.known.has(draftRef(1))).toBe(true);
});

test('what has to wait for the next request has no part in what becomes of this one', async () => {
  const remote = new Remote();
  const queue = new WriteQueue(remote, NO_PAUSE);
  const first = create(queue, 0);
  while (remote.requests.length < 1) await setImmediate();
  const same = (name: string) => {
    const updates = [{ type: 'create', ref: draftRef(1), new: name } as const];
    return queue.add({
      package: name,
      ...{ wholePackage: false, urgent: false },
      plan: { name, updates, marks: [], revokes: false },
    });
  };
  const both = [same('a'), same('b')];
  await first;
  remote.refetch = async () => {
    throw new SluiceError('Unavailable', 'no answer');
  };
  remote.refuses = () => true;
  remote.meanwhile.set(3, () => {
    remote.refuses = () => false;
  });
  const results = await Promise.allSettled(both);
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
  expect(remote.refs.get(draftRef(1))).toBe('b');
});

test('a request waits for a place, with what is added meanwhile, and frees it; without one it needs none', async () => {
  const places = new Limiter({ maxRunning: 1, slowAfterMs: 1000, clock: new ManualClock() });
  const release = await places.acquire();
  const acquirePlace = (signal: AbortSignal) => places.acquire(signal);
  const remote = new Remote();
  const queue = new WriteQueue(remote, { ...NO_PAUSE, acquirePlace });
  const writes = [create(queue, 0)];
  await create(new WriteQueue(new Remote(), { ...NO_PAUSE, acquirePlace: () => Promise.reject(new Error('none')) }), 0);
  writes.push(create(queue, 1));
  await setImmediate();
  expect(remote.requests).toEqual([]);
  release();
  await Promise.all(writes);
  expect(remote.requests).toHaveLength(1);
  (await places.acquire())();
});

test('a queue that is closed waits for no place', async () => {
  const places = new Limiter({ maxRunning: 1, slowAfterMs: 1000, clock: new ManualClock() });
  await places.acquire();
  const remote = new Remote();
  const queue = new WriteQueue(remote, { ...NO_PAUSE, acquirePlace: (signal) => places.acquire(signal) });
  const refused = expect(create(queue, 0)).rejects.toThrow('being closed');
  await setImmediate();
  await queue.drain();
  await refused;
  expect(remote.requests).toEqual([]);
});

test('a group is one commit, also with more publications than other requests have, between those of others', async () => {
  const remote = new Remote();
  const queue = new WriteQueue(remote, NO_PAUSE);
  const group = new RequestGroup(200);
  const writes = Array.from({ length: 200 }, (_, number) => share(queue, number, group));
  await Promise.all([...writes, publish(queue, 300), create(queue, 301)]);
  const history = (remote.refs.get(MAIN) ?? '').split('<').map((commit) => commit.split('+').length);
  expect(history.sort((a, b) => a - b)).toEqual([1, 1, 200]);
  expect(MAX_SHARED_WRITES).toBeGreaterThan(200);
});

test('after a request of a group failed as a whole the next ones are smaller, and grow again', async () => {
  const remote = new Remote();
  const queue = new WriteQueue(remote, NO_PAUSE);
  const all = () => {
    const group = new RequestGroup(100);
    return Promise.allSettled(Array.from({ length: 100 }, (_, number) => share(queue, number, group)));
  };
  remote.lost = 'before';
  expect((await all()).every(({ status }) => status === 'rejected')).toBe(true);
  expect((await all()).every(({ status }) => status === 'fulfilled')).toBe(true);
  expect(
    remote.refs
      .get(MAIN)
      ?.split('<')
      .map((commit) => commit.split('+').length),
  ).toEqual([1, 50, 50]);
});

test('of a group in which a rule refuses one the others are one commit where the rule names it, and none is lost where not', async () => {
  for (const words of ['named', 'unnamed'] as const) {
    const remote = new Remote();
    remote.words = words;
    remote.refuses = (ref) => ref === 'refs/tags/p5/v1';
    const queue = new WriteQueue(remote, NO_PAUSE);
    const group = new RequestGroup(16);
    const all = await Promise.allSettled(Array.from({ length: 16 }, (_, number) => share(queue, number, group)));
    expect(all.flatMap(({ status }, number) => (status === 'rejected' ? number : []))).toEqual([5]);
    const commits = (remote.refs.get(MAIN) ?? '').split('<').slice(1);
    expect(commits.join('+').split('+')).toHaveLength(15);
    expect(commits.length).toBeLessThanOrEqual(words === 'named' ? 1 : Math.log2(16));
  }
});

const request = fc.record({
  what: fc.constantFrom('create', 'publish', 'share'),
  group: fc.nat(1),
  /** How long it waits before it is asked for, in turns of the event loop. */
  after: fc.nat(6),
});
const world = fc.record({
  unfit: fc.record({
    refused: fc.array(fc.nat(39), { maxLength: 3 }),
    tooLarge: fc.array(fc.nat(39), { maxLength: 2 }),
  }),
  requests: fc.array(request, { minLength: 1, maxLength: 40 }),
  refused: fc.array(fc.nat(39), { maxLength: 4 }),
  words: fc.constantFrom<Words>('named', 'unnamed'),
  /** Before which requests another writer moves main, or takes the name of a draft or tag. */
  moves: fc.array(fc.integer({ min: 1, max: 8 }), { maxLength: 4 }),
  takes: fc.array(fc.tuple(fc.integer({ min: 1, max: 8 }), fc.nat(39)), { maxLength: 4 }),
  lost: fc.option(fc.tuple(fc.integer({ min: 1, max: 8 }), fc.constantFrom('before', 'after'))),
});

test('writes are serialisable, and acknowledged ones are present', async () => {
  await fc.assert(
    fc.asyncProperty(world, async ({ requests, refused, words, moves, takes, lost, unfit }) => {
      const remote = new Remote();
      remote.words = words;
      const bad = new Set(refused.flatMap((number) => [draftRef(number), `refs/tags/p${number}/v1`]));
      remote.refuses = (ref) => bad.has(ref);
      const taken = new Set<number>();
      for (const [at, number] of takes)
        remote.meanwhile.set(at, () => {
          const ref = requests[number]?.what === 'create' ? draftRef(number) : `refs/tags/p${number}/v1`;
          if (remote.refs.has(ref)) return;
          remote.set(ref, 'other');
          taken.add(number);
        });
      let others = 0;
      for (const at of moves) remote.meanwhile.set(at, () => remote.set(MAIN, `${remote.refs.get(MAIN)}<o${others++}`));
      if (lost !== null)
        remote.meanwhile.set(lost[0], () => {
          remote.lost = lost[1] as 'before' | 'after';
        });
      const queue = new WriteQueue(remote, NO_PAUSE);
      const groups = [new RequestGroup(0), new RequestGroup(0)];
      const unfits = { refused: new Set(unfit.refused), tooLarge: new Set(unfit.tooLarge) };
      const results = await Promise.allSettled(
        requests.map(async ({ what, after, group }, number) => {
          for (let turn = 0; turn < after; turn += 1) await setImmediate();
          if (what === 'share') await share(queue, number, groups[group] ?? new RequestGroup(0), unfits);
          else await (what === 'create' ? create : publish)(queue, number);
        }),
      );
      // Main never went anywhere but forward, one publication on top of the other.
      for (const [position, value] of remote.mains.entries())
        if (position > 0) expect(value.startsWith(`${remote.mains[position - 1]}<`)).toBe(true);
      const history = (remote.refs.get(MAIN) ?? '').split(/[<+]/);
      expect(new Set(history).size).toBe(history.length);
      // Only what has one group shares a commit.
      for (const commit of (remote.refs.get(MAIN) ?? '').split('<').map((text) => text.split('+')))
        if (commit.length > 1)
          expect(new Set(commit.map((name) => placeOf(requests[Number(name.slice(1))]))).size).toBe(1);
      for (const [number, result] of results.entries()) {
        const what = requests[number]?.what;
        const publishes = what !== 'create';
        const ref = publishes ? `refs/tags/p${number}/v1` : draftRef(number);
        const value = remote.refs.get(ref);
        const there = publishes ? history.includes(`t${number}`) : value === `d${number}`;
        if (publishes) expect(value?.split('<').at(-1)?.split('+').includes(`t${number}`) ?? false).toBe(there);
        const name = `${publishes ? 't' : 'd'}${number}`;
        const isMarked = remote.raised.some(({ marks }) => marks.some(({ digest }) => digest === name));
        if (isMarked) expect(there).toBe(true);
        if (result.status === 'fulfilled') {
          expect(there && isMarked).toBe(true);
          continue;
        }
        // No write fails without a reason of its own; only a lost answer concerns all.
        const { reason } = result;
        if (reason.details?.outcome === 'unknown') continue;
        expect(there).toBe(false);
        const codes = [...(bad.has(ref) ? ['PushRefused'] : []), ...(taken.has(number) ? ['Conflict'] : [])];
        if (what === 'share' && unfits.refused.has(number)) codes.push('Refused');
        if (what === 'share' && unfits.tooLarge.has(number)) codes.push('LimitExceeded');
        expect(codes).toContain(reason.code);
      }
    }),
    { numRuns: runs(500) },
  );
});

/** What a commit with several publications consists of. */
function placeOf(one: { readonly what: string; readonly group: number } | undefined): string {
  return `${one?.what} ${one?.group}`;
}
