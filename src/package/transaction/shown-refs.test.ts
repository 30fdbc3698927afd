import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { joinStates, type ShownStates } from '../trust/ledger/shown-states.ts';
import { ShownRefs } from './shown-refs.ts';

let folder: string;
/** In the cluster. */
let stored: ShownStates;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-shown-'));
  stored = {};
});
afterEach(() => rmSync(folder, { recursive: true }));

const oid = (digit: number) => `${digit}`.repeat(40);
const added = (name: string, digit: number) => ({ name, before: undefined, after: oid(digit) });
const moved = (name: string, before: number, after: number) => ({ name, before: oid(before), after: oid(after) });

/** A process with a mirror in a folder; `epoch` is absent for a standby. */
function processOn(mirror: string, epoch?: string, prefixes: readonly string[] = ['refs/']) {
  const advanced: string[] = [];
  let failure: SluiceError | undefined;
  let own: ShownStates = {};
  const trust = {
    repository: 'r1',
    shown: () => joinStates(stored, own),
    shownBy: epoch,
    advanceShown: (refs: string) => {
      if (epoch === undefined) return undefined;
      const number = (joinStates(stored, own)[epoch]?.number ?? 0) + 1;
      advanced.push(`${epoch}:${number}`);
      own = { [epoch]: { number, refs } };
      return { [epoch]: number };
    },
    flushed: async () => {
      if (failure !== undefined) throw failure;
      stored = joinStates(stored, own);
    },
  };
  const refs = new ShownRefs({ file: join(folder, `${mirror}.json`), prefixes, trust });
  const fail = (error: SluiceError | undefined) => {
    failure = error;
  };
  return { refs, advanced, fail };
}

const isCurrent = (refs: ShownRefs, ...present: { after: string; name: string }[]) => {
  try {
    refs.expectCurrent(
      present.map(({ name, after }) => ({ name, oid: after })),
      'https://git.example.com/packages',
    );
    return true;
  } catch (error) {
    if (error instanceof SluiceError && error.code === 'Unavailable') return false;
    throw error;
  }
};

test('a mirror is current once it was fetched after the last change that was shown', async () => {
  const { refs: leader } = processOn('a', '1');
  const { refs: standby } = processOn('b');
  expect([isCurrent(leader), isCurrent(standby)]).toEqual([true, true]);
  await leader.prepare([added('x', 1)], leader.wanted);
  expect([isCurrent(leader), isCurrent(standby)]).toEqual([true, false]);
  await standby.prepare([added('x', 1)], standby.wanted);
  expect(isCurrent(standby)).toBe(true);
  const before = standby.wanted;
  await leader.prepare([moved('x', 1, 2)], undefined);
  // The fetch began before the change was shown.
  await standby.prepare([], before);
  expect(isCurrent(standby)).toBe(false);
  // Not after a fetch, so that nothing is known of the tags.
  await standby.prepare([moved('x', 1, 2)], undefined);
  expect(isCurrent(standby)).toBe(false);
  await standby.prepare([], standby.wanted);
  expect(isCurrent(standby)).toBe(true);
});

test('nothing is written where nothing changed, also by the next process on the mirror', async () => {
  const first = processOn('a', '1');
  await first.refs.prepare([added('x', 1), added('y', 2)], {});
  await first.refs.prepare([moved('x', 1, 3)], undefined);
  await first.refs.prepare([], first.refs.wanted);
  expect(first.advanced).toEqual(['1:1', '1:2']);
  const next = processOn('a', '5');
  await next.refs.prepare([added('y', 2), added('x', 3)], next.refs.wanted);
  expect(next.advanced).toEqual([]);
  const changed = processOn('a', '7');
  await changed.refs.prepare([added('y', 2), added('x', 4)], changed.refs.wanted);
  expect(changed.advanced).toEqual(['7:1']);
});

test('what a crash or a failure kept from being shown is recorded when it is shown', async () => {
  const first = processOn('a', '1');
  await first.refs.prepare([added('x', 1)], {});
  first.fail(new SluiceError('Unavailable', 'no server'));
  await expect(first.refs.prepare([moved('x', 1, 2)], undefined)).rejects.toThrow('no server');
  first.fail(undefined);
  await first.refs.prepare([moved('x', 1, 2)], undefined);
  expect(first.advanced).toEqual(['1:1', '1:2']);
  expect(stored).toMatchObject({ 1: { number: 2 } });
  // The mirror has a fetched change that no process has shown.
  const next = processOn('a', '2');
  await next.refs.prepare([added('x', 2), added('new', 1)], undefined);
  expect(next.advanced).toEqual(['2:1']);
});

test('registrations share a mirror and what it contains; without its file a mirror with the same refs is current', async () => {
  const one = processOn('a', '1').refs;
  const other = processOn('a', '1', ['refs/heads/other']).refs;
  await one.prepare([added('x', 1)], {});
  expect(isCurrent(other)).toBe(true);
  writeFileSync(join(folder, 'a.json'), '{"repository": "r1"');
  expect(isCurrent(one)).toBe(false);
  expect(isCurrent(one, added('x', 1))).toBe(true);
  expect(isCurrent(one, added('x', 2))).toBe(false);
  expect(isCurrent(other, added('x', 1))).toBe(false);
});

test('two processes that show the same refs record them once each', async () => {
  const [api, controllers] = [processOn('a', '1'), processOn('b', '2')];
  await controllers.refs.prepare([added('x', 1)], {});
  await api.refs.prepare([added('x', 1)], {});
  await api.refs.prepare([moved('x', 1, 2)], undefined);
  await controllers.refs.prepare([moved('x', 1, 2)], controllers.refs.wanted);
  await api.refs.prepare([], api.refs.wanted);
  expect([api.advanced, controllers.advanced]).toEqual([['1:1'], ['2:1', '2:2']]);
});
