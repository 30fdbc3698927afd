import { expect, test } from 'vitest';
import type { SourceContext } from '../../../src/controller/source.ts';
import { ManualClock, settle } from '../../../src/foundation/time/manual-clock.ts';
import { keyText, type ObjectKey } from '../../../src/resource/object/object.ts';
import { PlanProbes } from './plan-probes.ts';

const A = { namespace: 'default', name: 'a' };
const B = { namespace: 'default', name: 'b' };
const INTERVAL_MS = 30_000;

/** Probes that respond when the test says so. */
function bench() {
  const clock = new ManualClock();
  const open: { url: string; signal: AbortSignal; respond: (status: number) => Promise<void> }[] = [];
  const probe = (url: string, signal: AbortSignal) =>
    new Promise<number>((resolve) => {
      const entry = {
        ...{ url, signal },
        respond: async (status: number) => {
          open.splice(open.indexOf(entry), 1);
          resolve(status);
          await settle();
        },
      };
      open.push(entry);
    });
  const woken: string[] = [];
  const works: Promise<void>[] = [];
  const context = {
    enqueue: (key: ObjectKey) => woken.push(keyText(key)),
    track: (work: (signal: AbortSignal) => Promise<void>) => works.push(work(new AbortController().signal)),
  };
  const probes = new PlanProbes({ probe, clock, monotonic: () => clock.monotonic(), quietMs: 100 });
  const stop = probes.source.start(context as unknown as SourceContext<ObjectKey>);
  const urls = (...names: readonly string[]) => new Map(names.map((name) => [name, `https://x.example/${name}`]));
  const read = async (key: ObjectKey, urlOf: ReadonlyMap<string, string>) => {
    const resultOf = probes.read(key, urlOf, INTERVAL_MS);
    await settle();
    return [...urlOf.keys()].map((name) => resultOf(name)?.result);
  };
  const paths = () => open.map(({ url }) => new URL(url).pathname.slice(1));
  const respond = async (path: string, status = 200) => open[paths().indexOf(path)]?.respond(status);
  return { clock, open, probes, stop, urls, read, woken, works, paths, respond };
}

test('reading waits for no response; a result wakes the plan, and one that is the same later does not', async () => {
  const { clock, urls, read, woken, paths, respond } = bench();
  expect(await read(A, urls('one', 'two'))).toEqual([undefined, undefined]);
  expect(paths()).toEqual(['one', 'two']);
  await respond('one');
  expect(woken).toEqual([]);
  await clock.advanceAsync(100);
  expect(woken).toEqual(['default/a']);
  expect(await read(A, urls('one', 'two'))).toEqual(['Verified', undefined]);
  await respond('two', 500);
  await clock.advanceAsync(INTERVAL_MS);
  expect(woken).toHaveLength(2);
  expect(await read(A, urls('one', 'two'))).toEqual(['Verified', 'Degraded']);
  expect(paths()).toEqual(['one', 'two']);
  await respond('one');
  await respond('two', 503);
  await clock.advanceAsync(100);
  expect(woken).toHaveLength(3);
  // Not before their interval has passed.
  expect(await read(A, urls('one', 'two'))).toEqual(['Verified', 'Degraded']);
  expect(paths()).toEqual([]);
});

test('addresses that do not respond delay the others once, and other plans not at all', async () => {
  const { urls, read, paths, respond, open } = bench();
  const names = Array.from({ length: 200 }, (_, index) => `${index}`);
  await read(A, urls(...names));
  expect(paths()).toEqual(names.slice(0, 32));
  await read(B, urls('own'));
  expect(paths()).toContain('own');
  // Each is probed before the first one is probed again, however often the plan is observed.
  const begun = [...paths()].filter((path) => path !== 'own');
  while (begun.length < names.length) {
    await read(A, urls(...names));
    await respond(paths().find((path) => path !== 'own') ?? '', 500);
    for (const path of paths()) if (path !== 'own' && !begun.includes(path)) begun.push(path);
  }
  expect(begun).toEqual(names);
  expect(open.length).toBeLessThanOrEqual(33);
});

test('the oldest result is probed first', async () => {
  const { clock, urls, read, paths, respond } = bench();
  await read(A, urls('one', 'two', 'three'));
  for (const path of ['two', 'one', 'three']) await respond(path);
  await clock.advanceAsync(INTERVAL_MS);
  const all = urls('three', 'new', 'two', 'one');
  await read(A, all);
  // The sequence of their requests, not that of their responses; what was never probed comes before.
  expect(paths()).toEqual(['new', 'one', 'two', 'three']);
});

test('a result is no result for what was published after its request, also at the same address', async () => {
  const { clock, read, paths, respond, woken } = bench();
  const shared = (...names: readonly string[]) => new Map(names.map((name) => [name, 'https://x.example/all']));
  await read(A, shared('first'));
  expect(await read(A, shared('first', 'second'))).toEqual([undefined, undefined]);
  await respond('all');
  expect(await read(A, shared('first', 'second'))).toEqual(['Verified', undefined]);
  expect(paths()).toEqual(['all']);
  await respond('all');
  await clock.advanceAsync(100);
  expect(woken.length).toBeGreaterThan(0);
  expect(await read(A, shared('first', 'second'))).toEqual(['Verified', 'Verified']);
});

test('what verifies no target any more is forgotten, with a response that is still to come', async () => {
  const { urls, read, respond, probes } = bench();
  await read(A, urls('gone', 'stays'));
  await read(A, urls('stays'));
  await respond('gone');
  await respond('stays');
  expect(await read(A, urls('gone', 'stays'))).toEqual([undefined, 'Verified']);
  probes.forget(A);
  expect(await read(A, urls('stays'))).toEqual([undefined]);
});

test('a stop ends all probes, and none begins after it', async () => {
  const { urls, read, stop, open, works, paths, woken, clock } = bench();
  await read(A, urls('one'));
  await read(B, urls('two'));
  const signals = open.map(({ signal }) => signal);
  stop();
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  await Promise.all(works);
  open.splice(0);
  await read(A, urls('one'));
  await clock.advanceAsync(1000);
  expect(paths()).toEqual([]);
  expect(woken).toEqual([]);
});
