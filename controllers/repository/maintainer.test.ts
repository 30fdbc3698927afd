import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { messageOf } from '../../src/foundation/sluice-error.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import type { GitRepository, MaintainOptions } from '../../src/git/git-repository.ts';
import { openRepository } from '../../src/git/open/open-repository.ts';
import { initBare, temporaryFolder } from '../../test/support/git/git-cli.ts';
import { Maintainer } from './maintainer.ts';

const MIB = 1024 * 1024;
const HOUR = 3_600_000;

let folder: ReturnType<typeof temporaryFolder>;
let clock: ManualClock;
let opened: GitRepository[];
let reports: string[];
/** Runs of maintenance as they began and ended. */
let runs: string[];
let options: MaintainOptions[];
beforeEach(() => {
  folder = temporaryFolder();
  clock = new ManualClock(Date.now());
  [opened, reports, runs, options] = [[], [], [], []];
});
afterEach(async () => {
  for (const git of opened) await git.close();
  folder.remove();
});

async function repository(name: string, bytes: number, isOwn = true) {
  const inner = await openRepository(initBare(join(folder.path, `${name}.git`)));
  opened.push(inner);
  await inner.writeBlob(randomBytes(bytes));
  await inner.transaction([]);
  const git = new Proxy(inner, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target);
      if (typeof value !== 'function') return value;
      if (property !== 'maintain') return value.bind(target);
      return async (given: MaintainOptions) => {
        runs.push(`+${name}`);
        options.push(given);
        try {
          await target.maintain(given);
        } finally {
          runs.push(`-${name}`);
        }
      };
    },
  });
  const report = (reason: string, error: unknown) => reports.push(`${name} ${reason}: ${messageOf(error)}`);
  return { name, git, isOwn, report };
}

const maintainer = (budget?: number) => new Maintainer({ clock, interval: 6 * HOUR, budget });

test('repositories are maintained one at a time, and those of others only when they need it', async () => {
  const subject = maintainer();
  const all = [await repository('a', 10), await repository('b', 10), await repository('c', 10, false)];
  const look = () => {
    for (const one of all) subject.startIfDue(one.name, one);
  };
  look();
  clock.advance(7 * HOUR);
  await expect
    .poll(() => {
      look();
      return runs;
    })
    .toEqual(['+a', '-a', '+b', '-b']);
  for (const { name } of all) await subject.forget(name, name);
  expect(options.map(({ dropAfter, underPressure }) => [dropAfter, underPressure])).toEqual([
    [14 * 24 * HOUR, false],
    [14 * 24 * HOUR, false],
  ]);
  expect(reports).toEqual([]);
});

test('above the budget less is kept, an event reports it, and no mirror is added', async () => {
  const subject = maintainer(3 * MIB);
  const [small, large] = [await repository('small', MIB), await repository('large', 4 * MIB)];
  subject.startIfDue('small', small);
  expect(() => subject.checkBudget()).not.toThrow();
  subject.startIfDue('large', large);
  await expect.poll(() => reports.join()).toMatch(/^large DiskBudgetExceeded: .* use 6 MiB, the disk budget is 3 MiB/);
  expect(runs).toEqual(['+large', '-large']);
  expect(options[0]).toMatchObject({ dropAfter: HOUR, underPressure: true });
  expect(() => subject.checkBudget()).toThrow(/no mirror is added/);
  await subject.forget('large', 'large');
  expect(() => subject.checkBudget()).not.toThrow();
});

test('what runs ends when the repository is closed, without an event', async () => {
  const subject = maintainer(1);
  const one = await repository('one', 2 * MIB);
  subject.startIfDue('one', one);
  await subject.forget('one', 'one');
  expect(reports).toEqual([]);
  expect(runs.length % 2).toBe(0);
});
