import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ALL_RUNS, runs } from '../../../test/support/runs.ts';
import { anna, commitFiles, type Scratch, scratchRepository } from '../../../test/support/scratch-repository.ts';
import { outcomeOf } from '../../../test/support/shop.ts';
import { MAIN_LAYOUT, trustOf } from '../../../test/support/trust.ts';
import type { Oid } from '../../git/git-repository.ts';
import { openRepository } from '../../git/open/open-repository.ts';
import { EventLog } from '../../resource/watch/event-log.ts';
import { packageStorages } from '../api/package-storages.ts';
import { DEFAULT_POLICY } from '../model/policy/policy.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import { PackageRepository } from './package-repository.ts';
import { RevisionStore } from './revision-store.ts';

const PACKAGES = 600;
const CHANGED = [0, 100, 200, 300, 400, 599];

let scratch: Scratch;
let [first, second]: [Oid, Oid] = ['', ''];

/** Each package is on the main branch and has a draft. */
beforeAll(async () => {
  scratch = await scratchRepository();
  const git = await openRepository(scratch.path);
  const files = Object.fromEntries(numbers(PACKAGES).map((n) => [`p${n}/a.yaml`, `a: ${n}\n`]));
  first = await commitFiles(git, files, scratch.clock.now());
  second = await commitFiles(git, { 'p0/a.yaml': 'a: new\n' }, scratch.clock.now());
  await git.transaction(numbers(PACKAGES).map((n) => ({ type: 'create', ref: draftRef(n), new: first })));
  await git.close();
  await (await opened()).close();
});

afterAll(() => scratch[Symbol.asyncDispose]());

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, number) => number);
}

function draftRef(number: number): string {
  return `refs/heads/drafts/p${number}/w`;
}

async function opened(): Promise<PackageRepository> {
  const git = await openRepository(scratch.path);
  return PackageRepository.open({
    ...{ name: 'packages', namespace: 'default', deployment: false, url: scratch.path, clock: scratch.clock },
    ...(await trustOf(git, scratch.path)),
    ...{ layout: MAIN_LAYOUT, git },
    cacheFile: join(scratch.folder, 'cache'),
    policyFor: () => DEFAULT_POLICY,
    dependentsOf: () => [],
    onChange: () => undefined,
  });
}

/** What a client knows that listed once and has listened since. */
function observed(store: RevisionStore) {
  const known = new Map(store.list().map((revision) => [revision.name, revision.etag]));
  const calls: number[] = [];
  const check = (revision: PackageRevision | undefined, name: string) => expect(revision?.etag).toBe(known.get(name));
  store.subscribe((changes) => {
    calls.push(changes.length);
    for (const { before, after } of changes) {
      const { name } = (after ?? before) as PackageRevision;
      check(before, name);
      if (after === undefined) known.delete(name);
      else known.set(name, after.etag);
    }
  });
  return { known, calls };
}

function namesAndEtags(store: RevisionStore): Map<string, string> {
  return new Map(store.list().map((revision) => [revision.name, revision.etag]));
}

function bySortedName(known: ReadonlyMap<string, string>): [string, string][] {
  return [...known].sort(([a], [b]) => (a < b ? -1 : 1));
}

test('property: a listener has the current revisions at any time, while repositories are opened and closed', async () => {
  const step = fc.record({
    what: fc.constantFrom('turn', 'look', 'move', 'move'),
    place: fc.nat(CHANGED.length - 1),
    to: fc.nat(2),
    late: fc.boolean(),
  });
  let during = 0;
  const run = async (
    steps: readonly (typeof step extends fc.Arbitrary<infer Step> ? Step : never)[],
    isRemoved: boolean,
  ) => {
    const store = new RevisionStore();
    const repository = await opened();
    // From here on all is known that the changes need, and they take no turn.
    const move = async (number: number, to: Oid | undefined) => {
      const name = draftRef(number);
      return repository.index.apply([{ name, before: repository.index.ref(name), after: to }]);
    };
    for (const number of CHANGED) for (const to of [second, first]) await move(number, to);
    const { revisions, packages } = packageStorages({
      store,
      log: new EventLog({ clock: scratch.clock }),
      clock: scratch.clock,
    });
    const expectShown = async () => {
      const rows = store.list();
      expect(revisions.table.select(undefined).map((entry) => entry.revision)).toEqual(rows);
      const { items } = await packages.list(anna);
      expect(items.map(({ spec }) => spec.packageName).sort()).toEqual(
        [...new Set(rows.map(({ key }) => key.package))].sort(),
      );
    };
    const observers = [observed(store)];
    const all = [...repository.index.all()].length;
    let isArriving = true;
    const arrivals: string[] = [];
    store.onArrival((name) => arrivals.push(`${name} ${store.list().length === [...repository.index.all()].length}`));
    const adding = store.add(repository).finally(() => {
      isArriving = false;
    });
    adding.catch(() => undefined);
    expect(store.list().length).toBeLessThan(all);
    for (const one of steps) {
      if (one.what === 'turn') await setImmediate();
      else if (one.what === 'look') observers.push(observed(store));
      else {
        const changes = await move(CHANGED[one.place] ?? 0, [undefined, first, second][one.to]);
        if (isArriving) during += 1;
        // A part may be announced between the change and its announcement.
        if (one.late) await setImmediate();
        store.announce(changes);
      }
      for (const { known } of observers) expect(bySortedName(known)).toEqual([...namesAndEtags(store)]);
      expect(store.repositories()).toEqual(isArriving ? [] : [repository]);
    }
    if (!isRemoved) {
      await adding;
      expect(arrivals).toEqual(['default/packages true']);
      expect(store.list().map(({ name }) => name)).toEqual([...repository.index.all()].map(({ name }) => name).sort());
      for (const { known } of observers) expect(bySortedName(known)).toEqual([...namesAndEtags(store)]);
      await expectShown();
    }
    const next = await opened();
    const removing = store.remove('packages');
    observers.push(observed(store));
    expect(store.list()).toEqual([]);
    // One that comes in its place waits until all know that it is gone.
    const addingNext = store.add(next);
    await removing;
    for (const { known } of observers) expect(bySortedName(known)).toEqual([...namesAndEtags(store)]);
    await addingNext;
    for (const { known } of observers) expect(bySortedName(known)).toEqual([...namesAndEtags(store)]);
    expect(store.repositories()).toEqual([next]);
    await expectShown();
    await store.close();
  };
  await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 14 }), fc.boolean(), run), { numRuns: runs(25, 4) });
  if (ALL_RUNS) expect(during).toBeGreaterThan(0);
});

test('opening and closing a repository yields to other work between two parts', async () => {
  const store = new RevisionStore();
  const { calls } = observed(store);
  let turns = 0;
  const countTurns = async (whole: Promise<void>) => {
    let isOver = false;
    const ended = whole.finally(() => {
      isOver = true;
    });
    for (turns = 0; !isOver; turns += 1) await setImmediate();
    await ended;
  };
  await countTurns(store.add(await opened()));
  expect(calls.reduce((sum, each) => sum + each)).toBe(PACKAGES);
  expect(Math.max(...calls)).toBeLessThan(PACKAGES / 4);
  expect(turns).toBeGreaterThanOrEqual(calls.length - 1);
  calls.length = 0;
  await countTurns(store.remove('packages'));
  expect(calls.reduce((sum, each) => sum + each)).toBe(PACKAGES);
  expect(Math.max(...calls)).toBeLessThan(PACKAGES / 4);
  expect(turns).toBeGreaterThanOrEqual(calls.length - 1);
});

test('a wait for a repository ends when all of it was announced, or when it is closed', async () => {
  const store = new RevisionStore();
  const { known } = observed(store);
  const { signal } = new AbortController();
  const adding = store.add(await opened());
  const waiting = store.arrival('packages', signal).then(() => known.size);
  expect(known.size).toBeLessThan(PACKAGES);
  await adding;
  expect(await waiting).toBe(PACKAGES);
  await store.remove('packages');

  const again = store.add(await opened());
  const inVain = store.arrival('packages', signal);
  await Promise.all([expect(again).rejects.toMatchObject({ code: 'Unavailable' }), store.remove('packages'), inVain]);
  expect(known.size).toBe(0);
});

test('nothing more is announced of what was arriving when the store is closed', async () => {
  const store = new RevisionStore();
  const { calls } = observed(store);
  const adding = store.add(await opened());
  const closing = store.close();
  await expect(adding).rejects.toMatchObject({ code: 'Unavailable' });
  await closing;
  expect(calls).toHaveLength(1);
  expect(store.list()).toEqual([]);
  const backlog = await opened();
  expect(await outcomeOf(store.add(backlog))).toMatch(/^Unavailable/);
  await backlog.close();
});

test('the error of a listener at one part is thrown after the others were notified, and the repository is not kept', async () => {
  const store = new RevisionStore();
  let [hasReported, most] = [0, 0];
  store.subscribe((changes) => {
    if (changes.some(({ after }) => after?.key.package === 'p300')) throw new Error('broken');
  });
  store.subscribe((changes) => {
    for (const { after } of changes) hasReported += after === undefined ? -1 : 1;
    most = Math.max(most, hasReported);
  });
  await expect(store.add(await opened())).rejects.toThrow('broken');
  expect([hasReported, most]).toEqual([0, PACKAGES]);
  expect(store.repositories()).toEqual([]);
});
