import { expect, test } from 'vitest';
import { writeMessage } from '../../src/delivery/tree/trailers.ts';
import type { Commit } from '../../src/git/git-repository.ts';
import { deliveryCommits, type LastDelivery, lastDelivery, searchDeliveries } from './delivery-history.ts';

const WEB = { repository: 'apps', package: 'web' };

/** A branch of commits with these messages, the oldest first; the ids are `c1`, `c2`, … */
function branch(...messages: readonly string[]) {
  const commits = messages.map((message, index): Commit => {
    const author = { name: 'sluice', email: '', time: 1000 * (index + 1) };
    const parents = index === 0 ? [] : [`c${index}`];
    return {
      ...{ oid: `c${index + 1}`, tree: 't', parents, message, author, signature: undefined },
      committer: { ...author, time: 99_000 },
    };
  });
  const changesUpTo = [0];
  for (const message of messages) changesUpTo.push((changesUpTo.at(-1) ?? 0) + (message.includes('empty') ? 0 : 1));
  return {
    head: `c${commits.length}`,
    git: {
      // Each commit but those with "empty" in the message changes the folder.
      statObjects: async (names: readonly string[]) =>
        names.map((name) => {
          const last = Number(name.slice(1, name.indexOf(':')));
          return { oid: `t${changesUpTo[last]}`, type: 'tree' as const, size: 0 };
        }),
      readCommit: async (oid: string) => commits.find((one) => one.oid === oid) ?? Promise.reject(new Error(oid)),
    },
  };
}

function delivered(target: string, revision: number, packages = [WEB]): string {
  const items = packages.map((one) => ({
    ...{ ...one, revision, sourceCommit: `s${revision}`, sourceTree: 't', gates: [] },
  }));
  return writeMessage(target, { delivered: items, removed: [] });
}

/** The deliveries of a package by `east`, up to its last removal. */
async function historyOf(git: ReturnType<typeof branch>['git'], head: string): Promise<LastDelivery[]> {
  const history: LastDelivery[] = [];
  const add = (one: LastDelivery) => {
    history.push(one);
    return one.revision === undefined;
  };
  await searchDeliveries(git, head, 'east', [{ name: WEB, folder: 'web', add }], new AbortController().signal);
  return history;
}

const removal = writeMessage('east', { delivered: [], removed: [WEB] });

test('a package of another target in the same branch counts neither as last nor as earlier delivery', async () => {
  const { git, head } = branch(delivered('east', 1), delivered('west', 7), 'a change of another writer\n');
  expect(await lastDelivery(git, head, WEB, 'east')).toEqual({
    ...{ commit: 'c1', revision: 1, sourceCommit: 's1', time: 1000 },
  });
  expect(await historyOf(git, head)).toHaveLength(1);
  expect(await lastDelivery(git, head, WEB, 'north')).toBeUndefined();
});

test('the history of a package ends at its removal', async () => {
  const { git, head } = branch(delivered('east', 1), removal, delivered('east', 2), delivered('east', 3));
  const revisions = (await historyOf(git, head)).map(({ revision }) => revision);
  expect(revisions).toEqual([3, 2, undefined]);
  expect(await lastDelivery(git, 'c2', WEB, 'east')).toMatchObject({ commit: 'c2', revision: undefined });
});

test('an empty commit of another writer is no delivery and no removal', async () => {
  const forged = [`empty\n\n${delivered('east', 1)}`, `empty\n\n${removal}`];
  const { git, head } = branch(delivered('east', 1), delivered('east', 2), ...forged, delivered('east', 3));
  const revisions = (await historyOf(git, head)).map(({ revision }) => revision);
  expect(revisions).toEqual([3, 2, 1]);
});

test('the walk ends at a known commit, at the first one, or after 1,000 commits', async () => {
  const { git, head } = branch(delivered('east', 1), delivered('east', 2), delivered('east', 3));
  const walk = deliveryCommits(git, head, 'east', { until: 'c1' });
  expect((await walk.next()).value).toMatchObject({ commit: 'c3', parent: 'c2' });
  expect((await walk.next()).value).toMatchObject({ commit: 'c2' });
  expect(await walk.next()).toEqual({ done: true, value: 'known' });
  const first = deliveryCommits(git, 'c1', 'east', { until: 'gone' });
  await first.next();
  expect(await first.next()).toEqual({ done: true, value: 'first' });
  const long = branch(...Array.from({ length: 1001 }, (_, index) => delivered('east', index + 1)));
  const rest = deliveryCommits(long.git, long.head, 'east');
  let step = await rest.next();
  for (let count = 0; step.done !== true && count < 2000; count += 1) step = await rest.next();
  expect(step).toEqual({ done: true, value: 'limit' });
});

test('the deliveries of many packages are searched in one walk, which reads no commit that no package needs', async () => {
  const packages = Array.from({ length: 2500 }, (_, index) => ({ repository: 'apps', package: `p${index}` }));
  const messages = [1, 2, 3, 4].map((revision) => delivered('east', revision, packages));
  const { git, head } = branch(...messages, 'a change of another writer\n');
  const reads: string[] = [];
  let folders = 0;
  const counting = {
    readCommit: (oid: string) => {
      reads.push(oid);
      return git.readCommit(oid);
    },
    statObjects: (names: readonly string[]) => {
      folders += names.length;
      return git.statObjects(names);
    },
  };
  const found = new Map<string, (number | undefined)[]>();
  const searches = packages.map((name) => {
    const revisions: (number | undefined)[] = [];
    found.set(name.package, revisions);
    return { name, folder: name.package, add: (one: LastDelivery) => revisions.push(one.revision) === 2 };
  });
  await searchDeliveries(counting, head, 'east', searches, new AbortController().signal);
  expect(reads).toEqual(['c5', 'c4', 'c3']);
  expect(folders).toBe(2 * 2 * packages.length);
  expect([...found.values()].every((revisions) => revisions.join() === '4,3')).toBe(true);
});

test('a search ends when its signal aborts', async () => {
  const { git, head } = branch(delivered('east', 1), delivered('east', 2), delivered('east', 3));
  const controller = new AbortController();
  const reads: string[] = [];
  const slow = {
    ...git,
    readCommit: (oid: string) => {
      reads.push(oid);
      controller.abort();
      return git.readCommit(oid);
    },
  };
  const never = { name: WEB, folder: 'web', add: () => false };
  await expect(searchDeliveries(slow, head, 'east', [never], controller.signal)).rejects.toThrow('aborted');
  expect(reads).toEqual(['c3']);
});
