import { beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { packageRevisionKind } from '../../../src/resource/kinds/porch/package-revision.ts';
import { packagePolicyKind } from '../../../src/resource/kinds/sluice/package-policy.ts';
import { eachProposals, GATE, type Proposals } from '../../../test/support/proposal-bench.ts';

describe('reviews of pull requests', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(() => {
    at = open();
  });

  test('an approving review publishes in the name of the mapped user, once the gates are open', async () => {
    await at.policy({}, { requiredGates: [{ conditionType: GATE, approveOnly: true }] });
    const name = await at.propose();
    await at.reconcile(name);
    await at.review(1, 'bob', 'approved', at.revision(name).commit);
    await at.reconcile(name);
    expect(at.revision(name).lifecycle).toBe('Proposed');
    // The condition is a commit of its own; it does not outdate the review.
    const reviewed = at.revision(name).commit;
    await at.set(name, 'True');
    expect(at.revision(name).commit).not.toBe(reviewed);
    await at.reconcile(name);
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', revision: 1, outOfBand: undefined });
    expect(at.revision(name).tip.facts).toMatchObject({ actor: 'bob@example.com', face: 'api' });
    expect((await at.world.events(name)).at(-1)).toMatch(
      /^Approved: approved as bob@example.com by review https:.*#review-1 of bob$/,
    );
    await at.reconcile(name);
    expect(at.forge.pulls[0]?.body).toContain(
      'Package revision `apps.app.w1` is Published now. Last step: `approve` by `bob@example.com`',
    );
  });

  test.each([
    [
      'of a user who is not listed',
      (commit: string) => at.review(1, 'mallory', 'approved', commit),
      /does not list this user/,
    ],
    ['that was dismissed', (commit: string) => at.review(1, 'bob', 'dismissed', commit), undefined],
    ['of an unknown commit', () => at.review(1, 'bob', 'approved', 'f'.repeat(40)), /the package has changed since/],
    ['of no commit', () => at.review(1, 'bob', 'approved', '--output=x'), /the package has changed since/],
  ])('a review %s does not count', async (_what, submit, message) => {
    await at.policy();
    const name = await at.propose();
    await at.reconcile(name);
    await submit(at.revision(name).commit);
    await at.reconcile(name);
    expect(at.revision(name).lifecycle).toBe('Proposed');
    const events = (await at.world.events(name)).slice(1);
    if (message === undefined) expect(events).toEqual([]);
    else expect(events).toEqual([expect.stringMatching(message)]);
  });

  test('a push that changes the package outdates a review', async () => {
    await at.policy({}, { requiredGates: [{ conditionType: GATE, approveOnly: true }] });
    const name = await at.propose();
    await at.reconcile(name);
    await at.review(1, 'bob', 'approved', at.revision(name).commit);
    await at.world.push(at.path, { 'app/b.yaml': 'kind: B\napiVersion: v1\nmetadata: {name: b}\n' }, 'proposed/app/w1');
    await at.world.store.repository('apps').sync();
    await at.set(name, 'True');
    await at.reconcile(name);
    expect(at.revision(name).lifecycle).toBe('Proposed');
    expect((await at.world.events(name)).at(-1)).toMatch(/^ReviewNotCounted: .* the package has changed since/);
    await at.review(1, 'bob', 'approved', at.revision(name).commit);
    await at.reconcile(name);
    expect(at.revision(name).lifecycle).toBe('Published');
  });

  test('a review that was followed by another one does not count again when that is deleted, also before it is recorded', async () => {
    await at.policy({}, { requiredGates: [{ conditionType: GATE, approveOnly: true }] });
    const name = await at.propose();
    await at.reconcile(name);
    await at.review(1, 'bob', 'approved', at.revision(name).commit);
    await at.review(1, 'bob', 'changes-requested', at.revision(name).commit);
    await at.reconcile(name);
    at.forge.reviewsOf.set(1, (at.forge.reviewsOf.get(1) ?? []).slice(0, 1));
    at.forge.change(1, {});
    at.restart();
    await at.set(name, 'True');
    for (let turn = 0; turn < 3; turn += 1) await at.reconcile(name);
    expect(at.revision(name).lifecycle).toBe('Proposed');
    expect((await at.world.events(name)).at(-1)).toMatch(/^ReviewNotCounted: .* the same user reviewed again after it/);
  });

  test('without the right to approve, a review does not count', async () => {
    await at.policy();
    const asked: unknown[] = [];
    at.restart({
      mayApprove: async (user, { name }) => {
        asked.push([user, name]);
        return false;
      },
    });
    const name = await at.propose();
    await at.reconcile(name);
    await at.review(1, 'bob', 'approved', at.revision(name).commit);
    await at.reconcile(name);
    // The check asks for all whom the policy maps.
    const users = ['bob@example.com', 'carl@example.com'].map((user) => [{ name: user }, name]);
    expect(new Set(asked.map((one) => JSON.stringify(one)))).toEqual(new Set(users.map((one) => JSON.stringify(one))));
    expect(at.revision(name).lifecycle).toBe('Proposed');
    expect((await at.world.events(name)).at(-1)).toMatch(
      /^ReviewNotCounted: the review \S+ of bob does not count: User "bob@example.com" may not update packagerevisions\/approval .*ClusterRole sluice:approver/,
    );
  });

  test.each(['review', 'merge'])('says what does not count where users look, until it does: %s', async (publishOn) => {
    await at.policy({ publishOn }, { requiredGates: [{ conditionType: GATE, approveOnly: true }] });
    const name = await at.propose();
    await at.reconcile(name);
    await at.review(1, 'carol', 'approved', at.revision(name).commit);
    await at.reconcile(name);
    const notes = () => at.world.store.repository('apps').refusals.of(name);
    const message = expect.stringMatching(/of carol does not count: spec.review.approvers of the policy does not list/);
    expect(notes()).toMatchObject([{ reason: 'ReviewNotCounted', message }]);
    expect((await at.forge.get(1)).body).toMatch(/Reviews that do not count:.*of carol does not count/);
    await at.review(1, 'carol', 'dismissed', at.revision(name).commit);
    await at.reconcile(name);
    expect(notes()).toEqual([]);
    expect((await at.forge.get(1)).body).not.toContain('Reviews that do not count');
  });

  test.each([
    ['review', 'it waits for its gates to open: example.com/Tested'],
    ['merge', 'it waits for its gates to open: example.com/Tested; then for the merge of its pull request'],
  ])('says what counts where users look, and for what it waits: %s', async (publishOn, waits) => {
    await at.policy({ publishOn }, { requiredGates: [{ conditionType: GATE, approveOnly: true }] });
    const name = await at.propose();
    await at.reconcile(name);
    await at.review(1, 'bob', 'approved', at.revision(name).commit);
    await at.reconcile(name);
    const notes = () => at.world.store.repository('apps').refusals.of(name);
    const explained = async () => {
      const read = await at.world.client
        .subResource('explain')
        .get(packageRevisionKind, { namespace: 'default', name });
      return JSON.stringify(read);
    };
    const message = `it is approved by the review of bob (bob@example.com), which counts; ${waits}`;
    expect(notes()).toEqual([expect.objectContaining({ reason: 'ApprovedByReview', message })]);
    expect((await at.forge.get(1)).body).toContain(`**Approved:** \`${message}\`.`);
    expect(await explained()).not.toContain('it waits for the approval of a user');
    await at.review(1, 'bob', 'dismissed', at.revision(name).commit);
    await at.reconcile(name);
    expect(notes()).toEqual([]);
    expect((await at.forge.get(1)).body).not.toContain('**Approved:**');
    expect(await explained()).toContain('it waits for the approval of a user');
    await at.review(1, 'carl', 'approved', at.revision(name).commit);
    await at.set(name, 'True');
    await at.reconcile(name);
    if (publishOn === 'review') expect(at.revision(name).lifecycle).toBe('Published');
    else expect(notes()).toMatchObject([{ message: expect.stringMatching(/counts; it waits for the merge of its/) }]);
  });

  test('a user cannot approve their own change through a review', async () => {
    const approvers = [{ user: 'bob', subject: 'berta' }];
    await at.policy({ approvers }, { approval: { forbidSelfApproval: true } });
    const name = await at.propose();
    await at.reconcile(name);
    await at.review(1, 'bob', 'approved', at.revision(name).commit);
    await at.reconcile(name);
    expect(at.revision(name).lifecycle).toBe('Proposed');
    expect((await at.world.events(name)).at(-1)).toMatch(/berta proposed it; another user has to approve it$/);
  });

  test('groups of a mapped user count for the right to approve and for a quorum of a group', async () => {
    const bob = { user: 'bob', subject: 'bob@example.com', groups: ['sre', 'all'] };
    const carl = { user: 'carl', subject: 'carl@example.com', groups: ['all'] };
    await at.policy({ approvers: [bob, carl] }, { approval: { quorum: { required: 1, from: ['group:sre'] } } });
    const asked = new Set<string>();
    at.restart({
      mayApprove: async (user) => {
        asked.add(JSON.stringify(user));
        return user.groups?.includes('sre') === true;
      },
    });
    const name = await at.propose();
    await at.reconcile(name);
    await at.review(1, 'carl', 'approved', at.revision(name).commit);
    await at.reconcile(name);
    expect(at.revision(name).lifecycle).toBe('Proposed');
    expect((await at.world.events(name)).at(-1)).toMatch(
      /^ReviewNotCounted: .*carl@example.com is none of those whose approvals policy review counts \(group:sre\)$/,
    );
    await at.review(1, 'Bob', 'approved', at.revision(name).commit);
    await at.reconcile(name);
    const users = [bob, carl].map(({ subject, groups }) => JSON.stringify({ name: subject, groups }));
    expect(asked).toEqual(new Set(users));
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  });

  describe('groups of teams', () => {
    const approvers = ['bob', 'carl'].map((user) => ({ user, subject: `${user}@example.com` }));
    const quorum = { required: 1, from: ['group:sre'] };
    async function reviewed(user: string): Promise<string> {
      await at.policy({ approvers, teams: [{ team: 'acme/sre', groups: ['sre'] }] }, { approval: { quorum } });
      const name = await at.propose();
      await at.reconcile(name);
      await at.review(1, user, 'approved', at.revision(name).commit);
      return name;
    }

    test('count for members whom the policy maps, as long as they are members', async () => {
      const name = await reviewed('bob');
      await at.reconcile(name);
      expect(at.revision(name).lifecycle).toBe('Proposed');
      expect((await at.world.events(name)).at(-1)).toMatch(/bob@example.com is none of those .* \(group:sre\)$/);
      at.forge.teams.set('acme/sre', new Set(['bob']));
      await at.reconcile(name);
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    });

    test('do not count for members whom the policy does not map', async () => {
      at.forge.teams.set('acme/sre', new Set(['mallory']));
      const name = await reviewed('mallory');
      await at.reconcile(name);
      expect(at.revision(name).lifecycle).toBe('Proposed');
      expect((await at.world.events(name)).at(-1)).toMatch(/does not list this user/);
      expect(at.forge.calls).not.toContain('isTeamMember');
    });

    test('do not count while the team cannot be read, and the event has the reason', async () => {
      at.forge.teams.set('acme/sre', new Set(['bob']));
      at.forge.before = (method) => {
        if (method === 'isTeamMember') throw new SluiceError('Refused', 'lacks a permission (members=read)');
      };
      const name = await reviewed('bob');
      await at.reconcile(name);
      expect(at.revision(name).lifecycle).toBe('Proposed');
      expect((await at.world.events(name)).at(-1)).toMatch(
        /\(group:sre\); the members of team acme\/sre cannot be read: lacks a permission \(members=read\)$/,
      );
    });
  });

  test('of two needed reviews none is recorded before both are there', async () => {
    await at.policy({}, { approval: { forbidSelfApproval: true } });
    const name = await at.propose();
    await at.world.push(at.path, { 'app/b.yaml': 'kind: B\napiVersion: v1\nmetadata: {name: b}\n' }, 'proposed/app/w1');
    await at.world.store.repository('apps').sync();
    await at.reconcile(name);
    await at.review(1, 'bob', 'approved', at.revision(name).commit);
    await at.reconcile(name);
    expect(at.revision(name).record?.approvals ?? []).toEqual([]);
    await at.review(1, 'carl', 'approved', at.revision(name).commit);
    await at.reconcile(name);
    expect(at.revision(name).lifecycle).toBe('Published');
  });

  test.each([
    ['requests changes', () => at.forge.review(1, 'carl', 'changes-requested', '')],
    ['closes it', () => at.forge.change(1, { state: 'closed' })],
    ['changes its base', () => at.forge.change(1, { base: { branch: 'other' } })],
  ])('what is read again before an approval decides: a user %s meanwhile', async (_what, act) => {
    await at.policy();
    const name = await at.propose();
    await at.reconcile(name);
    await at.review(1, 'bob', 'approved', at.revision(name).commit);
    at.forge.calls.length = 0;
    at.forge.before = (called) => {
      if (called !== 'get') return;
      at.forge.before = () => undefined;
      act();
    };
    await at.reconcile(name);
    expect(at.revision(name).lifecycle).toBe('Proposed');
  });

  test('a policy that changes while the host responds decides', async () => {
    await at.policy();
    const name = await at.propose();
    await at.reconcile(name);
    await at.review(1, 'bob', 'approved', at.revision(name).commit);
    const { spec } = await at.world.client.get(packagePolicyKind, { name: 'review' });
    const evaluate = at.world.store.evaluate.bind(at.world.store);
    let count = 0;
    at.restart({
      store: {
        change: (...args) => at.world.store.change(...args),
        evaluate: async (...args) => {
          const evaluation = await evaluate(...args);
          count += 1;
          const review = { ...spec.review, policy: 'review', approvers: [] } as never;
          return count === 1 ? evaluation : { ...evaluation, policy: { ...evaluation.policy, review } };
        },
        find: (...args) => at.world.store.find(...args),
        list: (...args) => at.world.store.list(...args),
        repositoryOf: (...args) => at.world.store.repositoryOf(...args),
        findRepository: (...args) => at.world.store.findRepository(...args),
        repositories: (...args) => at.world.store.repositories(...args),
        onArrival: (...args) => at.world.store.onArrival(...args),
        onPromotion: (...args) => at.world.store.onPromotion(...args),
        update: (...args) => at.world.store.update(...args),
      },
    });
    await at.reconcile(name);
    expect(count).toBe(2);
    expect(at.revision(name).lifecycle).toBe('Proposed');
  });
});
