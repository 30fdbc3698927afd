import { expect, test, vi } from 'vitest';
import type { PullRequest, Review } from '../../../src/forge/forge.ts';
import { NO_SIGNAL, SECOND, type Suite, wanted } from './forge-host.ts';

/** What every implementation has to do with reviews, reviewers and labels. */
export function describeReviews({ start, startWithPull, pageSize }: Suite): void {
  test('lists reviews with a verdict and the commit they are of, the last of each user, oldest first, and dismissals', async () => {
    const { forge, names, pull, head, commit, review, dismiss } = await startWithPull();
    const { anna, ben } = names;
    expect(await forge.reviews(pull.number, NO_SIGNAL)).toEqual([]);
    await forge.requestReviewers(pull.number, { users: [anna], teams: [] }, NO_SIGNAL);
    await review(ben, pull.number, 'comment');
    await review(ben, pull.number, 'request-changes');
    await review(anna, pull.number, 'approve');
    const next = await commit('proposed/shop/v1');
    await vi.waitFor(async () => {
      expect((await forge.get(pull.number, NO_SIGNAL)).head.commit).toBe(next);
    }, SECOND);
    await review(ben, pull.number, 'approve');
    const reviews = await forge.reviews(pull.number, NO_SIGNAL);
    expect(reviews.map(({ author, state, commit }) => [author, state, commit])).toEqual([
      [anna, 'approved', head],
      [ben, 'approved', next],
    ]);
    expect(new Set(reviews.map(({ id }) => id)).size).toBe(2);
    for (const { url, submittedAt } of reviews) {
      expect(url).toMatch(/^http/);
      expect(Date.parse(submittedAt)).toBeGreaterThan(Date.parse('2020-01-01'));
    }
    await dismiss(names.anna, pull.number, reviews[1]?.id ?? '');
    const after = await forge.reviews(pull.number, NO_SIGNAL);
    expect(after.map(({ author, state }) => [author, state])).toEqual([
      [anna, 'approved'],
      [ben, 'dismissed'],
    ]);
    const state = await forge.state(pull.number, NO_SIGNAL);
    const { hasComments = false, ...read } = state.pull;
    expect({ isQueued: false, ...state, pull: read }).toEqual({
      isQueued: false,
      pull: withoutComments(await forge.get(pull.number, NO_SIGNAL)),
      reviews: after,
    });
    expect(hasComments).toBe(false);
  });

  test('an approving review does not name its commit any more once the base was changed', async () => {
    const { forge, names, pull, head, commit, review, setBase } = await startWithPull();
    await commit('release');
    await review(names.anna, pull.number, 'approve');
    await review(names.ben, pull.number, 'request-changes');
    const commits = (reviews: readonly Review[]) => reviews.map(({ state, commit }) => [state, commit]);
    const before = [
      ['approved', head],
      ['changes-requested', head],
    ];
    expect(commits(await forge.reviews(pull.number, NO_SIGNAL))).toEqual(before);
    await setBase(names.anna, pull.number, 'release');
    const after = [['approved', undefined], before[1]];
    expect(commits(await forge.reviews(pull.number, NO_SIGNAL))).toEqual(after);
    const { pull: now, reviews } = await forge.state(pull.number, NO_SIGNAL);
    expect(commits(reviews)).toEqual(after);
    expect(commits((await forge.mergedState(now, NO_SIGNAL)).reviews)).toEqual(after);
    // Hosts report times in seconds.
    await vi.waitFor(async () => {
      await review(names.anna, pull.number, 'approve');
      expect(commits(await forge.reviews(pull.number, NO_SIGNAL))).toEqual([before[1], before[0]]);
    }, SECOND);
  });

  test('reads pull requests with their reviews at the same time, and reports each that is missing', async () => {
    const { forge, names, pull, review } = await startWithPull();
    await review(names.anna, pull.number, 'approve');
    const many = Array.from({ length: 25 }, () => forge.state(pull.number, NO_SIGNAL));
    for (const { reviews } of await Promise.all(many)) expect(reviews).toHaveLength(1);
    const [missing, present] = await Promise.allSettled(
      [987_654, pull.number].map((one) => forge.state(one, NO_SIGNAL)),
    );
    expect(missing).toMatchObject({ reason: { code: 'NotFound' } });
    expect(present).toMatchObject({ value: { pull: { number: pull.number }, reviews: [{ author: names.anna }] } });
  });

  test('reads the reviews of more than one page', async () => {
    const { forge, names, pull, review } = await startWithPull();
    const many = pageSize + 2;
    for (let at = 0; at < many; at += 1)
      await review(names.anna, pull.number, at % 2 === 0 ? 'request-changes' : 'approve');
    const reviews = await forge.reviews(pull.number, NO_SIGNAL);
    expect(reviews.map(({ author, state }) => [author, state])).toEqual([
      [names.anna, many % 2 === 0 ? 'approved' : 'changes-requested'],
    ]);
  });

  test('reports reviewers that the host refuses, and requests the others', async () => {
    const { forge, names, pull, requested, secrets } = await startWithPull();
    const wantedUsers = { users: ['missing-user', names.anna, names.sluice, names.ben], teams: ['no-such-team'] };
    const refused = await forge.requestReviewers(pull.number, wantedUsers, NO_SIGNAL);
    expect(refused.map(({ name: user }) => user)).toEqual(['missing-user', names.sluice, 'no-such-team']);
    for (const { reason } of refused) {
      expect(reason.length).toBeGreaterThan(10);
      for (const secret of secrets) expect(reason).not.toContain(secret);
    }
    expect([...(await requested(pull.number))].sort()).toEqual([names.anna, names.ben].sort());
    expect(await forge.requestReviewers(pull.number, { users: [names.anna], teams: [] }, NO_SIGNAL)).toEqual([]);
    const team = names.team === undefined ? [] : [names.team];
    expect(await forge.requestReviewers(pull.number, { users: [], teams: team }, NO_SIGNAL)).toEqual([]);
    if (names.team !== undefined) expect(await requested(pull.number)).toContain(names.team);
  });

  test('adds labels, creates those that are missing, and leaves others', async () => {
    const { forge, names, pull, label, labels } = await startWithPull();
    await label(names.anna, pull.number, 'urgent');
    const current = await forge.get(pull.number, NO_SIGNAL);
    expect(current.labels).toEqual(['urgent']);
    await forge.addLabels(current, [], NO_SIGNAL);
    await forge.addLabels(current, ['sluice', 'team: ünï/web', 'urgent'], NO_SIGNAL);
    const labelled = await forge.get(pull.number, NO_SIGNAL);
    expect([...labelled.labels].sort()).toEqual(['sluice', 'team: ünï/web', 'urgent']);
    // Also with a state from before: nothing is created twice.
    await forge.addLabels(pull, ['sluice', 'urgent'], NO_SIGNAL);
    expect([...(await forge.get(pull.number, NO_SIGNAL)).labels].sort()).toEqual([...labelled.labels].sort());
    expect([...(await labels())].sort()).toEqual(['sluice', 'team: ünï/web', 'urgent']);
  });

  test('creates a label once for pull requests that get it at the same time', async () => {
    const { forge, commit, labels } = await start();
    const pulls: PullRequest[] = [];
    for (const workspace of ['v1', 'v2', 'v3']) {
      await commit(`proposed/shop/${workspace}`);
      pulls.push(await forge.open({ ...wanted(), head: `proposed/shop/${workspace}` }, NO_SIGNAL));
    }
    await Promise.all(pulls.map((pull) => forge.addLabels(pull, ['package'], NO_SIGNAL)));
    for (const { number } of pulls) expect((await forge.get(number, NO_SIGNAL)).labels).toEqual(['package']);
    expect(await labels()).toEqual(['package']);
  });
}

function withoutComments({ hasComments: _, ...pull }: PullRequest) {
  return pull;
}
