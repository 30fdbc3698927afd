import { beforeEach, describe, expect, test, vi } from 'vitest';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { eachUserPulls, KPTFILE, type UserPullBench } from '../../../test/support/user-pull-bench.ts';

const open = eachUserPulls();
let at: UserPullBench;
beforeEach(async () => {
  at = open();
  await at.policy({ publishOn: 'merge' });
  await at.world.push(at.path, { 'README.md': 'start' });
  await at.world.store.repository('apps').refresh();
  await at.poll();
});

const numbers = [1, 2, 3];
const published = () => numbers.map((number) => at.world.store.find(`apps.web${number}.merge-${number}`)?.lifecycle);
const comments = () => numbers.map((number) => at.comment(number, 'merged') !== undefined);

async function poll(minutes: number): Promise<void> {
  for (let passed = 0; passed < minutes; passed += 1) await at.poll(60_000).catch(() => undefined);
}

describe('a host that takes no comments', () => {
  /** Those about which it takes some. */
  let taken: readonly number[];
  let error: SluiceError;
  let requests: number;
  beforeEach(async () => {
    taken = [];
    // As the limit of GitHub for new content, which permits reads.
    error = new SluiceError('TooManyRequests', 'the limit for new content is exceeded');
    requests = 0;
    for (const number of numbers) await at.pull({ [`web${number}/Kptfile`]: KPTFILE() }, { branch: `b${number}` });
    await at.poll();
    const setComment = at.forge.setComment.bind(at.forge);
    vi.spyOn(at.forge, 'setComment').mockImplementation(async (number, ...rest) => {
      requests += 1;
      if (!taken.includes(number)) throw error;
      return setComment(number, ...rest);
    });
    for (const number of numbers) {
      await at.merge(number, 'bob');
      at.clock.advance(2000);
    }
  });

  test('holds up no publication, gets no more requests than its limit permits, and gets the comments later', async () => {
    await at.poll();
    expect([published(), requests]).toEqual([['Published', 'Published', 'Published'], 1]);
    await poll(20);
    expect((await at.world.events('apps')).join()).not.toContain('MergeNotPublished');
    expect(comments()).toEqual([false, false, false]);
    taken = numbers;
    await poll(2);
    expect(comments()).toEqual([true, true, true]);
    const before = requests;
    await poll(3);
    expect(requests).toBe(before);
  });

  test('about one pull request gets those about the others', async () => {
    taken = [2, 3];
    error = new SluiceError('Unavailable', 'status 500');
    await poll(3);
    expect([published(), comments()]).toEqual([
      ['Published', 'Published', 'Published'],
      [false, true, true],
    ]);
  });
});
