import { beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { type Repository, repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { keyOf, keyText, type ObjectKey, type Stored } from '../../resource/object/object.ts';
import { InitialOpenings } from './initial-openings.ts';

const key = (name: string, namespace = 'default'): ObjectKey => ({ namespace, name });
const registered = (names: readonly ObjectKey[]) =>
  names.map((metadata) =>
    repositoryKind.complete({ metadata, spec: { git: { repo: 'https://host/a.git' } } }),
  ) as Stored<Repository>[];

let clock: ManualClock;
let objects: Stored<Repository>[];
let openings: InitialOpenings;
beforeEach(() => {
  clock = new ManualClock();
  objects = registered([key('apps'), key('infra'), key('apps', 'other')]);
  const get = (wanted: ObjectKey) => objects.find((object) => keyText(keyOf(object)) === keyText(wanted));
  openings = new InitialOpenings({ clock, repositories: { get, list: () => objects }, timeoutMs: 1000 });
});

/** Starts a wait; returns whether it is over after some time. */
function waitFor(wait: Promise<void>): (ms?: number) => Promise<boolean> {
  let isOver = false;
  void wait.then(() => {
    isOver = true;
  });
  return async (ms = 20) => {
    await clock.advanceAsync(ms);
    return isOver;
  };
}

test('waits for the first opening of one repository, and for no other', async () => {
  const apps = waitFor(openings.whenRead(key('apps')));
  const unknown = waitFor(openings.whenRead(key('unknown')));
  expect(await unknown(0)).toBe(true);
  openings.note('default/infra');
  openings.note('other/apps');
  expect(await apps()).toBe(false);
  openings.note('default/apps');
  expect(await apps()).toBe(true);
});

test('waits for all that are selected and still registered', async () => {
  const own = waitFor(openings.whenAllRead(({ namespace }) => namespace === 'default'));
  const all = waitFor(openings.whenAllRead());
  openings.note('default/apps');
  openings.note('default/infra');
  expect(await own()).toBe(true);
  expect(await all()).toBe(false);
  objects = objects.slice(0, 2);
  expect(await all()).toBe(true);
});

test('waits for no repository longer than one needs that does not respond, counted from the last opening', async () => {
  const all = waitFor(openings.whenAllRead());
  expect(await all(900)).toBe(false);
  openings.note('default/apps');
  expect(await all(900)).toBe(false);
  expect(await all(200)).toBe(true);
  expect(await waitFor(openings.whenRead(key('infra')))(0)).toBe(true);
});

test('ends with the signal of the request, and once it is finished', async () => {
  const request = new AbortController();
  const ended = waitFor(openings.whenRead(key('apps'), request.signal));
  request.abort();
  expect(await ended(0)).toBe(true);
  const finished = waitFor(openings.finish(new AbortController().signal));
  for (const object of objects) openings.note(keyText(keyOf(object)));
  expect(await finished()).toBe(true);
  objects = registered([key('late')]);
  expect(await waitFor(openings.whenRead(key('late')))(0)).toBe(true);
});

test('reports which repositories requests wait for', async () => {
  const wanted: ObjectKey[] = [];
  const unsubscribe = openings.onWanted((repository) => wanted.push(repository));
  openings.note('default/infra');
  void openings.whenRead(key('infra'));
  void openings.whenRead(key('unknown'));
  const apps = waitFor(openings.whenRead(key('apps')));
  expect(wanted).toEqual([key('apps')]);
  unsubscribe();
  void openings.whenRead(key('apps', 'other'));
  expect(wanted).toHaveLength(1);
  openings.note('default/apps');
  expect(await apps()).toBe(true);
});

test('a wait for several repositories does not include one that is not expected', async () => {
  const get = (wanted: ObjectKey) => objects.find((object) => keyText(keyOf(object)) === keyText(wanted));
  const isExpected = ({ metadata }: Stored<Repository>) => metadata.name === 'infra';
  const some = new InitialOpenings({ clock, repositories: { get, list: () => objects }, timeoutMs: 1000, isExpected });
  const all = waitFor(some.whenAllRead());
  expect(await all()).toBe(false);
  some.note('default/infra');
  expect(await all()).toBe(true);
  const one = waitFor(some.whenRead(key('apps')));
  expect(await one()).toBe(false);
});
