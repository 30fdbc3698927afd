import { beforeEach, describe, expect, test } from 'vitest';
import type { Resolver } from '../../src/package/plan/ports/resolver.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { ANNA } from '../../test/support/fixture.ts';
import { git } from '../../test/support/git/git-cli.ts';
import { eachProposals, GATE, type Proposals } from '../../test/support/proposal-bench.ts';
import { benchOf } from '../revision/testing-bench.ts';

const RESOLVER = { actor: { name: 'resolver:other' }, face: 'controller' } as const;
const OTHER = 'test.dev/other';
const REQUIRED = { requiredGates: [{ conditionType: GATE, approveOnly: true }] };

describe('a pull request in a merge queue of the host', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(() => {
    at = open();
    // As GitHub.
    at.forge.batchesReads = true;
    Object.assign(at.forge, {
      mergeQueue: { waiting: async () => ({ merges: [], isComplete: true }), treeOf: async () => undefined },
    });
  });

  /** A proposal that is ready, and that a user of the host has put into the queue. */
  async function queue(review: Record<string, unknown> = {}): Promise<string> {
    await at.policy({ publishOn: 'merge', ...review }, REQUIRED);
    const name = await at.propose();
    await at.set(name, 'True');
    for (let turn = 0; turn < 2; turn += 1) await at.reconcile(name);
    at.forge.queue.add(1);
    await changed(name);
    return name;
  }
  /** The host reports a change of the pull request. */
  async function changed(name: string): Promise<void> {
    at.forge.change(1, {});
    await look(name);
  }
  async function look(name: string): Promise<void> {
    at.clock.advance(30_000);
    await at.reconcile('apps');
    await at.reconcile(name);
  }
  const commitOf = (name: string) => at.revision(name).commit;
  const isQueued = (name: string) => at.world.store.repository('apps').refusals.isInMergeQueue(at.revision(name));
  const issue = (name: string) =>
    at.world.store.change(name, { conditions: [{ type: OTHER, status: 'True' }] }, RESOLVER);

  test('its branch gets no commit of a controller until it has left the queue, which the reasons state', async () => {
    const name = await queue();
    const commit = commitOf(name);
    await expect(issue(name)).rejects.toMatchObject({ code: 'Busy', message: expect.stringMatching(/merge queue/) });
    expect(commitOf(name)).toBe(commit);
    const refusals = at.world.store.repository('apps').refusals.of(name);
    expect(refusals).toMatchObject([
      { reason: 'MergeQueued', message: expect.stringMatching(/pulls\/1 is in the merge queue/) },
    ]);
    // The record has no place in the branch.
    await at.world.store.change(name, { metadata: { labels: { a: 'b' } } }, RESOLVER);
    expect(commitOf(name)).toBe(commit);
    expect(isQueued(name)).toBe(true);
    // The host changes nothing of the pull request when it leaves the queue.
    at.forge.queue.clear();
    at.woken.length = 0;
    await look(name);
    expect(at.woken).toContain(name);
    expect(isQueued(name)).toBe(false);
    await issue(name);
    expect(commitOf(name)).not.toBe(commit);
  });

  test.each([
    {
      what: 'a user has rejected it',
      end: (name: string) => at.world.store.update(name, { action: 'reject' }, ANNA),
    },
    {
      what: 'no policy has it reviewed any more',
      end: async (name: string) => {
        const policy = { namespace: 'default', name: 'review' };
        await at.world.client.patch(packagePolicyKind, policy, { spec: { review: null } } as never);
        await expect.poll(() => at.world.policyFor(at.revision(name)).review).toBeUndefined();
      },
    },
  ])('controllers write to the revision again where $what', async ({ end }) => {
    const name = await queue();
    expect(isQueued(name)).toBe(true);
    await end(name);
    await look(name);
    expect(isQueued(name)).toBe(false);
    expect(at.world.store.repository('apps').refusals.of(name)).toEqual([]);
    await issue(name);
  });

  test('a commit of a user removes it from the queue, also one through the API', async () => {
    const name = await queue();
    const commit = commitOf(name);
    await at.world.store.change(name, { conditions: [{ type: OTHER, status: 'True' }] }, { ...ANNA, face: 'api' });
    expect(commitOf(name)).not.toBe(commit);
    // The note is about the commit before.
    expect(isQueued(name)).toBe(false);
  });

  test('what closes a gate is written at once, since the queue must not merge it', async () => {
    const name = await queue();
    const commit = commitOf(name);
    at.forge.review(1, 'bob', 'changes-requested', commit);
    await look(name);
    const [condition] = at.revision(name).kptfile?.status?.conditions?.filter(({ status }) => status === 'False') ?? [];
    expect(condition).toMatchObject({ type: 'sluice.dev/Reviewed', reason: 'ChangesRequested' });
    expect(commitOf(name)).not.toBe(commit);
  });

  test('a command that sets a condition is refused with the reason, except one that closes a gate', async () => {
    const name = await queue();
    const commit = commitOf(name);
    at.forge.comment(1, 'bob', `/sluice set ${OTHER} True fine`);
    await look(name);
    await at.reconcile(name);
    expect(commitOf(name)).toBe(commit);
    const executed = () => at.revision(name).record?.commands?.entries ?? [];
    expect(executed()).toMatchObject([
      { outcome: 'refused', message: expect.stringMatching(/merge queue.*write the command again/) },
    ]);
    at.forge.comment(1, 'bob', `/sluice set ${GATE} False the test was wrong`);
    await look(name);
    await at.reconcile(name);
    expect(executed().at(-1)).toMatchObject({ outcome: 'done' });
    expect(commitOf(name)).not.toBe(commit);
  });

  test('the branch is not rebuilt on the main branch', async () => {
    const name = await queue();
    const commit = commitOf(name);
    await at.world.push(at.path, { 'other.yaml': 'a: 1\n' });
    await at.world.store.repository('apps').refresh();
    await look(name);
    expect(commitOf(name)).toBe(commit);
    at.forge.queue.clear();
    at.forge.mergeable = 'behind';
    await look(name);
    expect(commitOf(name)).not.toBe(commit);
  });

  test('a resolver of proposals waits with a condition that opens a gate, and not with one that closes it', async () => {
    const name = await queue();
    let status: 'True' | 'False' = 'True';
    const resolver: Resolver = {
      name: 'other',
      claims: [OTHER],
      checksProposals: true,
      applies: () => true,
      resolve: async () => ({ conditions: [{ type: OTHER, status, reason: 'Tested' }] }),
    };
    const { client, store } = at.world;
    const recorder = at.world.recorder('controller:revision');
    const run = benchOf({ client, store, clock: at.clock, recorder }).reconciler([resolver]);
    const commit = commitOf(name);
    expect(await run(name)).toEqual({ requeueAfter: 60_000, reason: 'its pull request is in a merge queue' });
    expect(commitOf(name)).toBe(commit);
    at.forge.queue.clear();
    await look(name);
    expect(await run(name)).toEqual({});
    const issued = commitOf(name);
    expect(issued).not.toBe(commit);
    at.forge.queue.add(1);
    await changed(name);
    expect(isQueued(name)).toBe(true);
    status = 'False';
    expect(await run(name)).toEqual({});
    expect(commitOf(name)).not.toBe(issued);
  });

  test('a shared one gets no further package while it is there, and the present head is replaced where one has changed', async () => {
    at.serveBranches();
    await at.policy({ publishOn: 'merge', batch: {} });
    const [api = ''] = await at.proposeAll('api');
    await at.settle();
    const head = () => at.forge.get(1).then((pull) => pull.head.commit);
    const before = await head();
    at.forge.queue.add(1);
    at.forge.change(1, {});
    await at.settle(60_000);
    const [web = ''] = await at.proposeAll('web');
    await at.settle(120_000);
    expect(await head()).toBe(before);
    expect(at.forge.pulls).toHaveLength(1);
    expect(at.forge.pulls[0]?.body).not.toContain(web);
    // A user withdraws what the queue would merge.
    await at.world.store.change(api, { conditions: [{ type: OTHER, status: 'False' }] }, ANNA);
    await at.settle(60_000);
    const pushed = await head();
    expect(pushed).not.toBe(before);
    expect(git(at.path, ['rev-parse', `${pushed}:api`])).toBe(git(at.path, ['rev-parse', 'proposed/api/w1:api']));
    at.forge.queue.clear();
    await at.settle(120_000);
    expect(at.forge.pulls[0]?.body).toContain(web);
    expect(git(at.path, ['ls-tree', '--name-only', await head(), 'web'])).toBe('web');
  });
});
