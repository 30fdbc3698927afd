import { beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { git } from '../../test/support/git/git-cli.ts';
import { eachProposals, type Proposals } from '../../test/support/proposal-bench.ts';
import { type ReportedPull, SyncRequests } from '../repository/sync-requests.ts';
import { MemoryForge } from './testing-forge.ts';

const REPOSITORY = { namespace: 'default', name: 'apps' };

describe('polls of pull requests, where webhooks report them', () => {
  const open = eachProposals();
  let at: Proposals;
  let requests: SyncRequests;
  let name: string;
  beforeEach(async () => {
    at = open();
    await at.policy();
    name = await at.propose();
    requests = new SyncRequests(at.clock);
    at.restart({ requests });
    await at.reconcile(name);
    report({});
    await at.reconcile('apps');
    // The pause after a list.
    at.clock.advance(3000);
    at.forge.calls.length = 0;
  });

  /** A message about the pull request as the host has it. */
  function report(news: Partial<ReportedPull>): void {
    const { number = 1, updatedAt, state, head } = at.forge.pulls[0] ?? {};
    const shown = { number, updatedAt, state, head: { branch: head?.branch ?? '', commit: head?.commit ?? '' } };
    requests.addReview(REPOSITORY, { pull: { ...shown, isReview: false, isComment: false, ...news } });
  }

  test('a review is read by the reconciliation alone, and what has just been published is no news', async () => {
    at.forge.review(1, 'bob', 'approved', at.revision(name).commit);
    report({ isReview: true });
    await at.reconcile('apps');
    expect(at.forge.calls).toEqual([]);
    expect(at.woken).toContain(name.split('/').at(-1));
    await at.reconcile(name);
    expect(at.revision(name).lifecycle).toBe('Published');
    expect(at.forge.calls).toEqual(['reviews', 'get']);
    at.forge.change(1, { state: 'closed' });
    report({});
    await at.reconcile('apps');
    expect(at.forge.calls).toEqual(['reviews', 'get']);
  });

  test('a review that was dismissed after it was read does not count', async () => {
    at.forge.review(1, 'bob', 'approved', at.revision(name).commit);
    report({ isReview: true });
    await at.reconcile('apps');
    at.forge.after = (method) => {
      if (method !== 'reviews') return;
      at.forge.after = () => undefined;
      const [review] = at.forge.reviewsOf.get(1) ?? [];
      at.forge.change(1, {});
      if (review !== undefined) at.forge.reviewsOf.set(1, [{ ...review, state: 'dismissed' }]);
    };
    await at.reconcile(name);
    expect(at.revision(name).lifecycle).toBe('Proposed');
    expect(at.forge.calls.slice(0, 3)).toEqual(['reviews', 'get', 'reviews']);
  });

  test('what may have changed twice in a second is read once more a minute later, as a message reports the other change', async () => {
    at.forge.change(1, { title: 'other' });
    const looks = async () => {
      at.woken.length = 0;
      await at.reconcile('apps');
      return at.woken.length > 0;
    };
    // The slow poll of a repository whose changes are reported.
    at.clock.advance(30_000);
    expect(await looks()).toBe(true);
    report({});
    at.clock.advance(30_000);
    expect(await looks()).toBe(false);
    at.clock.advance(30_000);
    expect(await looks()).toBe(true);
  });

  test('a head that the host reports before Sluice knows its push is no news; one that it never knows is read', async () => {
    const branch = at.forge.pulls[0]?.head.branch ?? '';
    const show = (commit: string) => at.forge.change(1, { head: { branch, commit, isSameRepository: true } });
    const poll = async () => ((await at.reconcile('apps')) as { requeueAfter: number }).requeueAfter;
    const identity = ['-c', 'user.name=bob', '-c', 'user.email=bob@example.com'];
    const commit = git(at.path, [...identity, 'commit-tree', `${branch}^{tree}`, '-p', branch, '-m', 'again']).trim();
    show(commit);
    report({});
    expect(await poll()).toBe(3000);
    git(at.path, ['update-ref', `refs/heads/${branch}`, commit]);
    await at.sync();
    at.clock.advance(3000);
    await poll();
    expect(at.forge.calls).toEqual([]);
    show('f'.repeat(40));
    report({});
    const waitMs = await poll();
    expect(at.forge.calls).toEqual([]);
    at.clock.advance(waitMs);
    await poll();
    expect(at.forge.calls).toEqual(['get', 'reviews']);
  });

  test('a comment and an end are read with their pull request', async () => {
    report({ isComment: true });
    await at.reconcile('apps');
    expect(at.forge.calls).toEqual(['get', 'reviews']);
    at.clock.advance(3000);
    at.forge.change(1, { state: 'closed' });
    report({});
    await at.reconcile('apps');
    expect(at.forge.calls).toEqual(['get', 'reviews', 'get', 'reviews']);
  });

  test('a merge queue is read although a pull request cannot be, and read again where that failed', async () => {
    let [reads, isDown] = [0, true];
    const waiting = async () => {
      reads += 1;
      if (isDown) throw new SluiceError('Unavailable', 'the host is down');
      return { merges: [{ number: 1, commit: 'b'.repeat(40) }], isComplete: true };
    };
    Object.assign(at.forge, { mergeQueue: { waiting, treeOf: async () => undefined } });
    requests.addReview(REPOSITORY, 'merge-queue');
    await expect(at.reconcile('apps')).rejects.toThrow('the host is down');
    isDown = false;
    at.forge.before = (method) => {
      if (method === 'get') throw new SluiceError('Refused', 'the App has been suspended');
    };
    at.clock.advance(3000);
    at.woken.length = 0;
    report({ isComment: true });
    await at.reconcile('apps');
    expect(reads).toBe(2);
    expect(at.woken).toContain(name.split('/').at(-1));
  });

  describe('in quiet times', () => {
    const poll = async () => ((await at.reconcile('apps')) as { requeueAfter: number }).requeueAfter;
    beforeEach(async () => {
      const end = at.clock.now() + 600_000;
      while (at.clock.now() < end) at.clock.advance(await poll());
      // The next list is five minutes later.
      at.forge.before = (method) => {
        if (method === 'listUpdated') at.clock.advance(1000);
      };
      await poll();
      expect(at.forge.calls.at(-1)).toBe('listUpdated');
      at.forge.before = () => undefined;
      at.forge.calls.length = 0;
    });

    test('another pull request of a branch, which is reported in the pause after a list, is read after it', async () => {
      // What messages name may be read sooner than another list.
      at.clock.advance(1000);
      report({ number: 7 });
      const waitMs = await poll();
      expect(waitMs).toBeLessThanOrEqual(3000);
      expect(at.forge.calls).toEqual([]);
      at.clock.advance(waitMs);
      expect(await poll()).toBeGreaterThan(3000);
      expect(at.forge.calls).toEqual(['listUpdated']);
    });

    test.each([
      { what: 'another pull request', news: { number: 7 }, isWoken: false },
      { what: 'another pull request beside a review', news: { isReview: true }, isWoken: true },
      { what: 'another pull request beside a comment', news: { isComment: true }, isWoken: true },
    ])('what was reported is read after a rate limit of the list: $what', async ({ news, isWoken }) => {
      at.clock.advance(60_000);
      at.forge.before = (method) => {
        if (method !== 'listUpdated') return;
        throw new SluiceError('TooManyRequests', 'the limit is reached', { details: { retryAfterMs: 1000 } });
      };
      report({ number: 7 });
      report(news);
      expect(await poll()).toBe(1000);
      at.forge.before = () => undefined;
      at.forge.calls.length = 0;
      at.woken.length = 0;
      at.clock.advance(1000);
      expect(await poll()).toBeGreaterThan(3000);
      expect(at.forge.calls).toEqual(['listUpdated']);
      expect(at.woken.includes(name.split('/').at(-1) ?? '')).toBe(isWoken);
    });
  });

  test.each([
    { what: 'on another host', isOther: true, ms: 0 },
    { what: 'on another host', isOther: true, ms: 100 },
    { what: 'with other credentials', isOther: false, ms: 100 },
  ])('each of two lists is read at the same pace: $what, where a response takes $ms ms', async ({ isOther, ms }) => {
    const other = isOther ? new MemoryForge() : at.forge;
    const api = 'https://other.example.com/api/v1';
    at.restart({ openForge: ({ forge }) => (forge.api === api ? other : at.forge) });
    await at.reconcile(name);
    const review = isOther ? { forge: { api } } : { teams: [{ team: 'org/sre', groups: ['sre'] }] };
    const policy = { namespace: 'default', name: 'review' };
    await at.world.client.patch(packagePolicyKind, policy, { spec: { review } });
    await expect.poll(() => at.world.policyFor(at.revision(name)).review).toMatchObject(review);
    const [web = ''] = await at.proposeAll('web');
    await at.reconcile(web);
    for (const forge of [at.forge, other]) forge.before = () => void at.clock.advance(ms);
    for (let times = 0; times < 5; times += 1) {
      at.forge.change(1, { title: `changed ${times}` });
      other.change(isOther ? 1 : 2, { title: `changed ${times}` });
      at.woken.length = 0;
      const end = at.clock.now() + 15_000;
      while (at.clock.now() < end) {
        const { requeueAfter } = (await at.reconcile('apps')) as { requeueAfter: number };
        at.clock.advance(Math.max(1, requeueAfter));
      }
      expect(at.woken).toEqual(expect.arrayContaining([name, web]));
    }
  });

  test('the pull requests of a host are read although those of another one cannot be', async () => {
    const other = new MemoryForge();
    const api = 'https://other.example.com/api/v1';
    at.restart({ requests, openForge: ({ forge }) => (forge.api === api ? other : at.forge) });
    await at.reconcile(name);
    await at.world.client.patch(
      packagePolicyKind,
      { namespace: 'default', name: 'review' },
      { spec: { review: { forge: { api } } } },
    );
    await expect.poll(() => at.world.policyFor(at.revision(name)).review?.forge.api).toBe(api);
    const [web = ''] = await at.proposeAll('web');
    await at.reconcile(web);
    at.forge.before = () => {
      throw new SluiceError('Refused', 'the App has been suspended');
    };
    other.calls.length = 0;
    report({ isComment: true });
    expect(await at.reconcile('apps')).toMatchObject({ reason: 'the App has been suspended' });
    expect(other.calls).toContain('listUpdated');
  });

  test('a pull request that cannot be read is looked at again, and its proposal shows why', async () => {
    at.forge.before = () => {
      throw new SluiceError('Refused', 'the App has been suspended');
    };
    report({ isComment: true });
    expect(await at.reconcile('apps')).toMatchObject({ requeueAfter: 60_000 });
    expect(at.woken).toContain(name.split('/').at(-1));
    expect(await at.world.events(name)).toContain('PullRequestFailed: the App has been suspended');
  });
});

describe('polls of a repository', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(() => {
    at = open();
  });

  test('polls often while there are changes, seldom in quiet times, and not without proposals', async () => {
    await at.policy();
    expect(await at.reconcile('apps')).toBeUndefined();
    const name = await at.propose();
    await at.reconcile(name);
    expect(await at.reconcile('apps')).toMatchObject({ requeueAfter: 10_000 });
    at.forge.calls.length = 0;
    at.clock.advance(301_000);
    expect(await at.reconcile('apps')).toMatchObject({ requeueAfter: 30_000 });
    expect(at.forge.calls).toEqual(['listUpdated']);
    at.forge.review(1, 'bob', 'approved', at.revision(name).commit);
    expect(await at.reconcile('apps')).toMatchObject({ requeueAfter: 10_000 });
    await at.reconcile(name);
    await at.reconcile(name);
    // Commands that come too late get a reply.
    expect(await at.reconcile('apps')).toMatchObject({ requeueAfter: 10_000 });
    at.clock.advance(601_000);
    await at.reconcile('apps');
    expect(await at.reconcile('apps')).toBeUndefined();
  });

  test('a webhook wakes the poll of its repository', async () => {
    const requests = new SyncRequests(at.clock);
    at.restart({ requests });
    requests.add({ namespace: 'default', name: 'apps' }, undefined);
    expect(at.woken).toEqual(['apps']);
  });
});
