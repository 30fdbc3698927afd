import { beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { BERTA, eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';

const QUEUE = 'github-merge-queue[bot]';
/** The user of the host who is the author of all proposals. */
const AUTHOR = { user: 'berta', subject: BERTA.actor.name };
const BOB = { user: 'Bob', subject: 'bob@example.com' };
const CARL = { user: 'carl', subject: 'carl@example.com' };
const SECOND_USER = { approval: { forbidSelfApproval: true } };
const TWO = { approval: { quorum: { required: 2 } } };

describe('the approvals of a merge with publishOn: merge', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(() => {
    at = open();
  });

  async function proposed(spec: Record<string, unknown>, review: Record<string, unknown> = {}): Promise<string> {
    await at.policy({ publishOn: 'merge', approvers: [AUTHOR, BOB, CARL], ...review }, spec);
    const name = await at.propose();
    await at.reconcile(name);
    return name;
  }
  async function merged(name: string, by: string): Promise<void> {
    await at.mergeHead(name, by);
    await at.readMerge(name);
  }
  const approve = (name: string, user: string) => at.review(1, user, 'approved', at.revision(name).commit);
  const statement = (name: string) => at.revision(name).tip.facts.statement?.statement.record;
  const addressOf = (review: number) => at.forge.reviewsOf.get(1)?.[review - 1]?.url;

  test('the author merges what a second user approved in a review: in band, as the approval of that user', async () => {
    const name = await proposed(SECOND_USER);
    await approve(name, 'carl');
    await merged(name, 'berta');
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', revision: 1, outOfBand: undefined });
    const { approvals, steps } = statement(name) ?? {};
    expect(approvals).toEqual([
      expect.objectContaining({ subject: CARL.subject, face: 'api', evidence: addressOf(1) }),
    ]);
    const { url } = at.forge.pulls[0] ?? {};
    const reason = `${url} was merged by berta, approved by ${addressOf(1)}`;
    expect(steps?.at(-1)).toMatchObject({ action: 'approve', by: CARL.subject, reason });
    expect((await at.world.events(name)).at(-1)).toMatch(
      /^Approved: published at .* was merged by berta, approved by /,
    );
  });

  test('the author alone is out of band, also after a review of their own', async () => {
    const name = await proposed(SECOND_USER);
    await approve(name, 'berta');
    await merged(name, 'berta');
    expect(at.revision(name).outOfBand).toMatchObject({
      reason: 'NotApproved',
      message: expect.stringMatching(/berta proposed .* and must not approve it/),
    });
  });

  test('the merge and a review are two approvals of a quorum, with the evidence of both', async () => {
    const name = await proposed(TWO);
    await approve(name, 'carl');
    await merged(name, 'bob');
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    expect(statement(name)?.approvals).toEqual([
      expect.objectContaining({ subject: CARL.subject, evidence: addressOf(1) }),
      expect.objectContaining({ subject: BOB.subject, evidence: at.forge.pulls[0]?.url }),
    ]);
  });

  test('one user is one approval, by a review, by a comment and by the merge', async () => {
    const name = await proposed(TWO);
    at.forge.comment(1, 'bob', '/sluice approve');
    await approve(name, 'bob');
    await at.reconcile(name);
    expect(at.revision(name).record?.approvals).toMatchObject([{ subject: BOB.subject }]);
    await merged(name, 'bob');
    expect(at.revision(name).outOfBand?.reason).toBe('NotApproved');
  });

  test('a recorded approval and a review of another user make the quorum of a merge by the queue of the host', async () => {
    const name = await proposed(TWO);
    const bob = { actor: { name: BOB.subject }, face: 'api' } as const;
    await at.world.store.update(name, { action: 'approve' }, bob);
    await at.reconcile(name);
    await approve(name, 'carl');
    await merged(name, QUEUE);
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    expect(statement(name)?.approvals).toMatchObject([{ subject: BOB.subject }, { subject: CARL.subject }]);
  });

  test.each<[string, (name: string) => Promise<void> | void]>([
    ['there is none', () => undefined],
    ['it is of a user whom the policy does not map', (name) => approve(name, 'mallory')],
    [
      'it was dismissed',
      async (name) => {
        await approve(name, 'carl');
        at.forge.reviewsOf.set(1, [{ ...at.forge.reviewsOf.get(1)?.[0], state: 'dismissed' } as never]);
        at.forge.change(1, {});
      },
    ],
    [
      'it is of other content',
      async (name) => {
        await approve(name, 'carl');
        const file = { 'app/b.yaml': 'kind: B\napiVersion: v1\nmetadata: {name: b}\n' };
        await at.world.push(at.path, file, 'proposed/app/w1');
        await at.world.store.repository('apps').sync();
        await at.reconcile(name);
        await approve(name, 'bob');
      },
    ],
    [
      'the user may not approve',
      async (name) => {
        at.restart({ mayApprove: async (user) => user.name !== CARL.subject });
        await approve(name, 'carl');
      },
    ],
  ])('a review does not count for a merge by a queue if %s', async (_, prepare) => {
    const name = await proposed(SECOND_USER);
    await prepare(name);
    await merged(name, QUEUE);
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: { reason: 'NotApproved' } });
  });

  test('a review after the merge does not count', async () => {
    const name = await proposed(SECOND_USER);
    await at.mergeHead(name, 'berta');
    await approve(name, 'carl');
    await at.readMerge(name);
    expect(at.revision(name).outOfBand?.reason).toBe('NotApproved');
  });

  describe('of a merge that the host may only have detected', () => {
    beforeEach(() => {
      at.forge.unsureMerger = 'the host names the last user who pushed';
    });

    test('it is none of the user whom the host reports', async () => {
      const name = await proposed({});
      await merged(name, 'bob');
      const message = expect.stringMatching(
        /another user may have made it: the host names the last.*by a review before/,
      );
      expect(at.revision(name).outOfBand).toMatchObject({ reason: 'NotApproved', message });
      expect(statement(name)?.approvals).toMatchObject([{ face: 'controller' }]);
    });

    test('a review of what was merged is the approval then', async () => {
      const name = await proposed(SECOND_USER);
      await approve(name, 'bob');
      await merged(name, 'bob');
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
      expect(statement(name)?.approvals).toMatchObject([{ subject: BOB.subject, evidence: addressOf(1) }]);
    });
  });

  describe('of a scheduled merge', () => {
    const AT = '2030-01-01T00:00:01Z';
    const change = async (name: string) => {
      const file = { 'app/b.yaml': 'kind: B\napiVersion: v1\nmetadata: {name: b}\n' };
      await at.world.push(at.path, file, 'proposed/app/w1');
      await at.world.store.repository('apps').sync();
      await at.reconcile(name);
    };
    const schedule = (
      name: string,
      by: string | undefined = 'bob',
      commit: string | undefined = at.revision(name).commit,
    ) => at.forge.schedules.set(1, { by, at: AT, commit });

    test('it is one of the content for which the user had scheduled it, also after a condition was set', async () => {
      const name = await proposed(SECOND_USER);
      schedule(name);
      const before = at.revision(name).commit;
      await at.world.store.change(
        name,
        { conditions: [{ type: 'example.com/Tested', status: 'True' }] },
        { actor: { name: 'carl' }, face: 'api' },
      );
      expect(at.revision(name).commit).not.toBe(before);
      await merged(name, 'bob');
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
      expect(statement(name)?.approvals).toMatchObject([{ subject: BOB.subject }]);
    });

    test.each<[string, RegExp, (name: string) => Promise<void> | void]>([
      [
        'the content has changed since',
        /as bob had scheduled at 2030.*the package has changed since.*by a review before you schedule/,
        async (name) => {
          schedule(name);
          await change(name);
        },
      ],
      [
        'the host does not report for which commit',
        /does not report for which commit/,
        () => void at.forge.schedules.set(1, { by: 'bob', at: AT, commit: undefined }),
      ],
      [
        'another user had scheduled it',
        /as carl had scheduled.*another user merged it/,
        (name) => void schedule(name, 'carl'),
      ],
    ])('it is none if %s', async (_, message, prepare) => {
      const name = await proposed({});
      await prepare(name);
      await merged(name, 'bob');
      expect(at.revision(name)).toMatchObject({
        lifecycle: 'Published',
        outOfBand: { reason: 'NotApproved', message: expect.stringMatching(message) },
      });
      expect(statement(name)?.approvals).toMatchObject([{ face: 'controller' }]);
      expect((await at.world.events(name)).at(-1)).toMatch(message);
    });

    test('a review of what was merged is the approval then', async () => {
      const name = await proposed({});
      schedule(name);
      await change(name);
      await approve(name, 'bob');
      await merged(name, 'bob');
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
      expect(statement(name)?.approvals).toMatchObject([{ subject: BOB.subject, evidence: addressOf(1) }]);
    });

    test('a user whom the policy does not map merges by the rules of the host, as by the button', async () => {
      const name = await proposed({});
      schedule(name, 'bob');
      await merged(name, QUEUE);
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    });

    test('what cannot be read is read again', async () => {
      const name = await proposed(SECOND_USER);
      at.forge.before = (method) => {
        if (method === 'mergedState') throw new SluiceError('Unavailable', 'the host is not there');
      };
      await expect(merged(name, 'bob')).rejects.toThrow('the host is not there');
      expect(at.revision(name).lifecycle).toBe('Proposed');
      at.forge.before = () => undefined;
      await at.readMerge(name);
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    });
  });

  test('groups of reviewers count for the quorum of a group', async () => {
    const quorum = { required: 1, from: ['group:sre'] };
    const approvers = [BOB, { ...CARL, groups: ['sre'] }];
    const name = await proposed({ approval: { quorum } }, { approvers });
    await approve(name, 'carl');
    await merged(name, 'bob');
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  });

  test('the pull request says whose reviews count', async () => {
    await proposed(SECOND_USER);
    expect(at.forge.pulls[0]?.body).toContain(
      'The merge and approving reviews of these users count as approvals: `Bob`, `carl`. Approve by a review before you schedule a merge',
    );
  });
});

describe('a merge by a user or by the queue of the host', () => {
  const open = eachProposals();

  test.each([
    ['squash', 'bob'],
    ['rebase', 'bob'],
    ['merge', 'bob'],
    ['squash', QUEUE],
    ['rebase', QUEUE],
    ['merge', QUEUE],
  ] as const)('ends in the same published revision: %s by %s', async (style, by) => {
    const at = open();
    await at.policy({ publishOn: 'merge', approvers: [BOB, CARL] }, SECOND_USER);
    const name = await at.propose();
    await at.reconcile(name);
    await at.review(1, 'carl', 'approved', at.revision(name).commit);
    await at.reconcile(name);
    const proposal = at.revision(name).tip.tree;
    // The main branch has moved, so that the commit of the host is another one than the head.
    await at.world.push(at.path, { 'other.yaml': 'a: 1\n' });
    const commit = await at.mergeHead(name, by, style);
    await at.readMerge(name);
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', revision: 1, commit, outOfBand: undefined });
    expect(at.revision(name).tip.tree).toBe(proposal);
    const last = (await at.world.store.evaluate(name)).record.steps.at(-1);
    expect(last?.by).toBe(by === QUEUE ? CARL.subject : BOB.subject);
  });

  test.each(['squash', 'rebase', 'merge'] as const)(
    'without an approval the merge of a queue is out of band: %s',
    async (style) => {
      const at = open();
      await at.policy({ publishOn: 'merge', approvers: [BOB, CARL] }, SECOND_USER);
      const name = await at.propose();
      await at.reconcile(name);
      await at.mergeHead(name, QUEUE, style);
      await at.readMerge(name);
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: { reason: 'NotApproved' } });
    },
  );
});
