import { beforeEach, describe, expect, test } from 'vitest';
import { repositoryKind } from '../../../src/resource/kinds/porch/repository.ts';
import { eachUserPulls, KPTFILE, type UserPullBench } from '../../../test/support/user-pull-bench.ts';

const DAY_MS = 86_400_000;
const open = eachUserPulls();
let at: UserPullBench;
beforeEach(() => {
  at = open();
});

const tags = () => at.refs('refs/tags/');

describe('a merge from before its Repository was registered', () => {
  const key = { namespace: 'default', name: 'apps' };
  /** The host has the clock of Sluice. */
  const mergeNow = async (number: number, name: string) => {
    await at.pull({ [`${name}/Kptfile`]: KPTFILE() }, { branch: name });
    await at.merge(number, 'bob');
    at.forge.change(number, { closedAt: new Date(at.clock.now()).toISOString() });
  };
  const registerAgain = async () => {
    const { client } = at.world;
    const { spec } = await client.get(repositoryKind, key);
    await client.delete(repositoryKind, key);
    await client.create(repositoryKind, { metadata: { name: 'apps' }, spec });
  };

  test('publishes nothing, and a later one counts although it is read later', async () => {
    await at.policy({ publishOn: 'merge' });
    at.clock.advance(DAY_MS);
    await mergeNow(1, 'web');
    at.clock.advance(30 * DAY_MS);
    await registerAgain();
    at.clock.advance(1000);
    await mergeNow(2, 'db');
    at.restart();
    for (let turn = 0; turn < 4; turn += 1) await at.poll();
    expect(await tags()).toEqual(['refs/tags/db/v1']);
    expect([at.comment(1, 'merged'), await at.world.events('apps')]).toEqual([undefined, []]);
  });
});

describe('a merge from before publishOn was changed', () => {
  const mergeReviewed = async (number: number, name: string) => {
    const commit = await at.pull({ [`${name}/Kptfile`]: KPTFILE() }, { branch: name });
    await at.poll();
    at.forge.review(number, 'bob', 'approved', commit);
    await at.merge(number, 'bob');
  };

  test.each([
    ['merge', 'review'],
    ['review', 'merge'],
  ] as const)('from %s to %s is published, also when it is changed back', async (first, second) => {
    await at.policy({ publishOn: first });
    await at.poll();
    await mergeReviewed(1, 'web');
    await at.setPublishOn(second);
    await at.poll();
    expect(await tags()).toEqual(['refs/tags/web/v1']);
    await mergeReviewed(2, 'db');
    await at.setPublishOn(first);
    at.restart();
    await at.poll();
    expect(await tags()).toEqual(['refs/tags/db/v1', 'refs/tags/web/v1']);
  });

  test('from a value by which it publishes nothing is not published by a later change', async () => {
    await at.policy({ publishOn: 'merge' });
    await at.poll();
    await at.setPublishOn('approval');
    await at.poll();
    await mergeReviewed(1, 'web');
    for (const publishOn of ['review', 'merge'] as const) {
      await at.setPublishOn(publishOn);
      at.restart();
      await at.poll();
    }
    expect(await tags()).toEqual([]);
  });
});
