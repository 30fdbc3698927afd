import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { ANNA, type Fixture, fixture } from '../../test/support/fixture.ts';
import { SyncRequests } from '../repository/sync-requests.ts';
import { type PullRequestOptions, pullRequestController } from './pull-request-controller.ts';
import { MemoryForge } from './testing-forge.ts';

const CONTEXT = { signal: new AbortController().signal, failures: 0 };
const BERTA = { ...ANNA, actor: { name: 'berta' } };
const GATE = 'example.com/Tested';

describe('pull-request controller', () => {
  let clock: ManualClock;
  let world: Fixture;
  let path: string;
  let forge: MemoryForge;
  let woken: string[];
  let reconcile: (name: string) => Promise<unknown>;

  beforeEach(async () => {
    clock = new ManualClock();
    world = await fixture(clock);
    path = await world.register('apps');
    forge = new MemoryForge();
    reconcile = process();
  });
  afterEach(() => world[Symbol.asyncDispose]());

  /** A new process, with nothing in memory. */
  function process(more: Partial<PullRequestOptions> = {}): typeof reconcile {
    woken = [];
    const { client, store } = world;
    const controller = pullRequestController({
      ...{ client, store, clock, mayApprove: undefined },
      openForge: () => forge,
      recorder: world.recorder('controller:pull-request'),
      ...more,
    });
    const queue = (key: { readonly name: string }) => void woken.push(key.name);
    controller.sources.at(-1)?.start({ enqueue: queue } as never);
    return async (name) => {
      // A change of the revision wakes the controller once more.
      const before = world.store.find(name)?.etag;
      const result = await controller.reconcile({ namespace: 'default', name }, CONTEXT);
      const isChanged = world.store.find(name)?.etag !== before && world.store.find(name)?.lifecycle === 'Proposed';
      return isChanged ? controller.reconcile({ namespace: 'default', name }, CONTEXT) : result;
    };
  }

  async function policy(review: Record<string, unknown> = {}, spec: Record<string, unknown> = {}): Promise<void> {
    const host = { provider: 'gitea', api: 'https://git.example.com/api/v1', secretRef: { name: 'forge' } } as const;
    const approvers = [
      { user: 'Bob', subject: 'bob@example.com' },
      { user: 'carl', subject: 'carl@example.com' },
    ];
    await world.client.create(packagePolicyKind, {
      metadata: { name: 'review' },
      spec: { ...spec, review: { forge: host, publishOn: 'review', approvers, ...review } },
    });
    const name = (await world.draft('apps/probe/w1')).name;
    await expect.poll(() => world.policyFor(world.store.get(name)).review).toBeDefined();
    await world.store.update(name, { action: 'delete' }, ANNA);
  }

  async function propose(workspace = 'w1'): Promise<string> {
    const { name } = await world.draft(`apps/app/${workspace}`, {
      'a.yaml': 'kind: A\napiVersion: v1\nmetadata: {name: a}\n',
    });
    await world.store.update(name, { action: 'propose' }, BERTA);
    return name;
  }
  const revision = (name: string) => world.store.get(name);
  /** A review, and the poll that finds it. */
  const review = async (...args: Parameters<MemoryForge['review']>) => {
    forge.review(...args);
    await reconcile('apps');
  };
  const set = (name: string, status: 'True' | 'False') =>
    world.store.change(name, { conditions: [{ type: GATE, status }] }, ANNA);

  test('opens one pull request for a proposal, with its gates and changes, and leaves it alone while nothing changes', async () => {
    await policy(
      { labels: ['packages'], reviewers: { users: ['carl'] }, gateChecks: [GATE] },
      { requiredGates: [{ conditionType: GATE, approveOnly: true }] },
    );
    const name = await propose();
    await reconcile(name);
    const [pull] = forge.pulls;
    expect(forge.pulls).toHaveLength(1);
    expect(pull).toMatchObject({
      ...{ title: 'Publish app (w1)', labels: ['packages'], state: 'open' },
      ...{ head: { branch: 'proposed/app/w1' }, base: { branch: 'main' } },
    });
    expect(pull?.body).toMatch(/^<!-- sluice:begin proposal=[0-9a-f]{16} -->\nPackage revision `apps\.app\.w1`\./);
    expect(pull?.body).toContain(`| \`${GATE}\` | **Missing** |`);
    expect(pull?.body).toContain('Reviews of these users count: `Bob`, `carl`.');
    expect(pull?.body).toContain('```diff\ndiff --git a/Kptfile b/Kptfile\n');
    expect(forge.requested).toEqual(['carl']);
    const { commit } = revision(name);
    expect(forge.checksOf(commit)).toEqual({ 'sluice/ready': 'pending', [`sluice/gate/${GATE}`]: 'pending' });
    expect(woken).toEqual(['apps']);
    forge.calls.length = 0;
    await reconcile(name);
    expect(forge.calls).toEqual([]);
    expect(await world.events(name)).toEqual([`PullRequestOpened: it is reviewed in ${pull?.url}`]);
  });

  test('a proposal shows why the pull requests of its repository cannot be read, once, and again if the reason changes', async () => {
    await policy();
    const name = await propose();
    await reconcile(name);
    await reconcile('apps');
    const fail = (message: string) => {
      forge.before = () => {
        throw new SluiceError('Refused', message);
      };
    };
    const failures = async () => (await world.events(name)).filter((event) => event.startsWith('PullRequestFailed'));
    fail('This installation has been suspended');
    for (let turn = 0; turn < 3; turn += 1) expect(await reconcile('apps')).toMatchObject({ requeueAfter: 60_000 });
    expect(await failures()).toEqual(['PullRequestFailed: This installation has been suspended']);
    fail('the App is not installed');
    await reconcile('apps');
    expect(await failures()).toHaveLength(2);
    forge.before = () => undefined;
    expect(await reconcile('apps')).toMatchObject({ requeueAfter: 10_000 });
  });

  test('a request to run a check again evaluates it and sets all checks of this commit, and of no other', async () => {
    await policy();
    const requests = new SyncRequests(clock);
    reconcile = process({ requests });
    const name = await propose();
    await reconcile(name);
    const { commit } = revision(name);
    // It reads changes of the same second once more.
    for (let turn = 0; turn < 2; turn += 1) await reconcile('apps');
    forge.checks.clear();
    requests.addReview({ namespace: 'default', name: 'apps' }, { rerun: 'f'.repeat(40) });
    woken.length = 0;
    await reconcile('apps');
    expect(woken).toEqual([]);
    requests.addReview({ namespace: 'default', name: 'apps' }, { rerun: commit });
    await reconcile('apps');
    expect(woken).toEqual([name]);
    await reconcile(name);
    expect(forge.checksOf(commit)).toEqual({ 'sluice/ready': 'success' });
    expect(requests.takeReview({ namespace: 'default', name: 'apps' })).toBeUndefined();
  });

  test('the commit of a merge queue gets the checks of its proposal, and a failure where the merge has other content', async () => {
    await policy();
    const requests = new SyncRequests(clock);
    const waiting: { number: number; commit: string }[] = [];
    const trees = new Map<string, string>();
    let reads = 0;
    const mergeQueue = {
      waiting: async () => {
        reads += 1;
        return waiting;
      },
      treeOf: async (commit: string) => trees.get(commit),
    };
    reconcile = process({ requests, openForge: () => Object.assign(forge, { mergeQueue }) });
    const name = await propose();
    await reconcile(name);
    await reconcile('apps');
    await reconcile('apps');
    const before = reads;
    await reconcile('apps');
    expect(reads).toBe(before);

    const { commit, path: folder } = revision(name);
    const [own] = await world.store.repositoryOf(revision(name)).git.statObjects([`${commit}:${folder}`]);
    const [same, other] = ['1'.repeat(40), '2'.repeat(40)];
    trees.set(same, own?.oid ?? '').set(other, '3'.repeat(40));
    const number = forge.pulls[0]?.number ?? 0;
    waiting.push({ number, commit: same }, { number, commit: other }, { number: 99, commit: '4'.repeat(40) });
    requests.addReview({ namespace: 'default', name: 'apps' }, 'merge-queue');
    woken.length = 0;
    await reconcile('apps');
    expect(woken).toEqual([name]);
    await reconcile(name);
    expect(forge.checksOf(same)).toEqual({ 'sluice/ready': 'success' });
    expect(forge.checksOf(other)).toEqual({ 'sluice/ready': 'failure' });
    expect(forge.checks.get(other)?.get('sluice/ready')?.title).toMatch(
      /merge changes the package.*remove it from the queue/,
    );
    expect(forge.checks.has('4'.repeat(40))).toBe(false);
    // It is read until it is empty, without a further request.
    waiting.length = 0;
    woken.length = 0;
    await reconcile('apps');
    const emptied = reads;
    await reconcile('apps');
    expect([reads, woken]).toEqual([emptied, []]);
  });

  test('a new process finds the pull request, and takes it over as it is', async () => {
    await policy();
    const name = await propose();
    await reconcile(name);
    const before = forge.pulls[0];
    reconcile = process();
    forge.calls.length = 0;
    await reconcile(name);
    expect(forge.pulls).toEqual([before]);
    expect(forge.calls).toEqual(['listUpdated', 'listOpen', 'reviews', 'setChecks']);
  });

  test('what fails after its effect is not done twice', async () => {
    await policy({ labels: ['packages'] });
    const name = await propose();
    for (const method of ['open', 'update', 'setChecks', 'addLabels', 'requestReviewers', 'reviews']) {
      reconcile = process();
      forge.after = (called) => {
        if (called === method) throw new SluiceError('Unavailable', 'status 502');
      };
      await reconcile(name).catch(() => undefined);
    }
    forge.after = () => undefined;
    reconcile = process();
    await reconcile(name);
    expect(forge.pulls).toHaveLength(1);
    expect(forge.pulls[0]?.body.match(/sluice:begin/g)).toHaveLength(1);
  });

  test('the text of a user stays in a pull request that is adopted', async () => {
    await policy();
    const name = await propose();
    await forge.open({ head: 'proposed/app/w1', base: 'main', title: 'Mine', body: 'Please look.\r\nThanks.' });
    await reconcile(name);
    expect(forge.pulls).toHaveLength(1);
    expect(forge.pulls[0]).toMatchObject({ title: 'Mine' });
    expect(forge.pulls[0]?.body).toMatch(/^Please look\.\nThanks\.\n\n<!-- sluice:begin/);
    expect(await world.events(name)).toEqual([`PullRequestAdopted: it is reviewed in ${forge.pulls[0]?.url}`]);
  });

  test('a check follows its gate: pending, failed, open', async () => {
    await policy({}, { requiredGates: [{ conditionType: GATE, approveOnly: true }] });
    const name = await propose();
    await set(name, 'False');
    await reconcile(name);
    expect(forge.checksOf(revision(name).commit)).toEqual({ 'sluice/ready': 'failure' });
    await set(name, 'True');
    await reconcile(name);
    expect(forge.checksOf(revision(name).commit)).toEqual({ 'sluice/ready': 'success' });
    expect(forge.pulls[0]?.body).toContain(`| \`${GATE}\` | Open |`);
  });

  test('an approving review publishes in the name of the mapped user, once the gates are open', async () => {
    await policy({}, { requiredGates: [{ conditionType: GATE, approveOnly: true }] });
    const name = await propose();
    await reconcile(name);
    await review(1, 'bob', 'approved', revision(name).commit);
    await reconcile(name);
    expect(revision(name).lifecycle).toBe('Proposed');
    // The condition is a commit of its own; it does not outdate the review.
    const reviewed = revision(name).commit;
    await set(name, 'True');
    expect(revision(name).commit).not.toBe(reviewed);
    await reconcile(name);
    expect(revision(name)).toMatchObject({ lifecycle: 'Published', revision: 1, outOfBand: undefined });
    expect(revision(name).tip.facts).toMatchObject({ actor: 'bob@example.com', face: 'api' });
    expect((await world.events(name)).at(-1)).toMatch(
      /^Approved: approved as bob@example.com by review https:.*#review-1 of bob$/,
    );
    await reconcile(name);
    expect(forge.pulls[0]?.body).toContain(
      'Package revision `apps.app.w1` is Published now. Last step: `approve` by `bob@example.com`',
    );
  });

  test.each([
    [
      'of a user who is not listed',
      (commit: string) => review(1, 'mallory', 'approved', commit),
      /does not list this user/,
    ],
    ['that was dismissed', (commit: string) => review(1, 'bob', 'dismissed', commit), undefined],
    ['of an unknown commit', () => review(1, 'bob', 'approved', 'f'.repeat(40)), /the package has changed since/],
    ['of no commit', () => review(1, 'bob', 'approved', '--output=x'), /the package has changed since/],
  ])('a review %s does not count', async (_what, submit, message) => {
    await policy();
    const name = await propose();
    await reconcile(name);
    await submit(revision(name).commit);
    await reconcile(name);
    expect(revision(name).lifecycle).toBe('Proposed');
    const events = (await world.events(name)).slice(1);
    if (message === undefined) expect(events).toEqual([]);
    else expect(events).toEqual([expect.stringMatching(message)]);
  });

  test('a push that changes the package outdates a review', async () => {
    await policy({}, { requiredGates: [{ conditionType: GATE, approveOnly: true }] });
    const name = await propose();
    await reconcile(name);
    await review(1, 'bob', 'approved', revision(name).commit);
    await world.push(path, { 'app/b.yaml': 'kind: B\napiVersion: v1\nmetadata: {name: b}\n' }, 'proposed/app/w1');
    await world.store.repository('apps').sync();
    await set(name, 'True');
    await reconcile(name);
    expect(revision(name).lifecycle).toBe('Proposed');
    expect((await world.events(name)).at(-1)).toMatch(/^ReviewNotCounted: .* the package has changed since/);
    await review(1, 'bob', 'approved', revision(name).commit);
    await reconcile(name);
    expect(revision(name).lifecycle).toBe('Published');
  });

  test('without the right to approve, a review does not count', async () => {
    await policy();
    const asked: unknown[] = [];
    reconcile = process({
      mayApprove: async (user, { name }) => {
        asked.push([user, name]);
        return false;
      },
    });
    const name = await propose();
    await reconcile(name);
    await review(1, 'bob', 'approved', revision(name).commit);
    await reconcile(name);
    expect(asked).toEqual([['bob@example.com', name]]);
    expect(revision(name).lifecycle).toBe('Proposed');
    expect((await world.events(name)).at(-1)).toMatch(
      /^ReviewNotCounted: .*User "bob@example.com" may not update packagerevisions\/approval/,
    );
  });

  test('nobody approves their own change through a review', async () => {
    const approvers = [{ user: 'bob', subject: 'berta' }];
    await policy({ approvers }, { approval: { forbidSelfApproval: true } });
    const name = await propose();
    await reconcile(name);
    await review(1, 'bob', 'approved', revision(name).commit);
    await reconcile(name);
    expect(revision(name).lifecycle).toBe('Proposed');
    expect((await world.events(name)).at(-1)).toMatch(/berta proposed it; another user has to approve it$/);
  });

  test('of two needed reviews none is recorded before both are there', async () => {
    await policy({}, { approval: { forbidSelfApproval: true } });
    const name = await propose();
    await world.push(path, { 'app/b.yaml': 'kind: B\napiVersion: v1\nmetadata: {name: b}\n' }, 'proposed/app/w1');
    await world.store.repository('apps').sync();
    await reconcile(name);
    await review(1, 'bob', 'approved', revision(name).commit);
    await reconcile(name);
    expect(revision(name).record?.approvals ?? []).toEqual([]);
    await review(1, 'carl', 'approved', revision(name).commit);
    await reconcile(name);
    expect(revision(name).lifecycle).toBe('Published');
  });

  test('requested changes are a closed gate for every approval, until they are withdrawn', async () => {
    await policy({ publishOn: 'approval' });
    const name = await propose();
    await reconcile(name);
    await review(1, 'bob', 'changes-requested', revision(name).commit);
    await reconcile(name);
    const gates = (await world.store.evaluate(name)).gates;
    expect(gates).toEqual([
      expect.objectContaining({ type: 'sluice.dev/Reviewed', state: 'NotTrue', requiredBy: ['policy review'] }),
    ]);
    await expect(world.store.update(name, { action: 'approve' }, ANNA)).rejects.toThrow(
      /gate sluice.dev\/Reviewed is closed.*changes requested by bob/,
    );
    const forged = { conditions: [{ type: 'sluice.dev/Reviewed', status: 'True' as const }] };
    await expect(world.store.change(name, forged, ANNA)).rejects.toThrow(/permits only controller:pull-request/);
    await expect(world.store.change(name, { withdraw: ['sluice.dev/Reviewed'] }, ANNA)).rejects.toThrow(
      /permits only controller:pull-request/,
    );
    await reconcile(name);
    expect(forge.checksOf(revision(name).commit)).toEqual({ 'sluice/ready': 'failure' });
    await review(1, 'bob', 'approved', revision(name).commit);
    await reconcile(name);
    await world.store.update(name, { action: 'approve' }, ANNA);
    expect(revision(name).lifecycle).toBe('Published');
  });

  test('closing the pull request rejects the proposal, with the comment; a new proposal gets a new one', async () => {
    await policy();
    const name = await propose();
    await reconcile(name);
    forge.closings.set(1, { by: 'bob', comment: 'not\nnow @all' });
    forge.change(1, { state: 'closed' });
    await reconcile('apps');
    expect(woken).toContain(name);
    await reconcile(name);
    expect(revision(name)).toMatchObject({ lifecycle: 'Draft' });
    const reason = `${forge.pulls[0]?.url} was closed by bob: not now @all`;
    expect(revision(name).record?.steps.at(-1)).toMatchObject({ action: 'reject', reason });
    await reconcile(name);
    clock.advance(1000);
    await world.store.update(name, { action: 'propose' }, BERTA);
    reconcile = process();
    await reconcile(name);
    expect(forge.pulls.map(({ state }) => state)).toEqual(['closed', 'open']);
    expect(revision(name).lifecycle).toBe('Proposed');
  });

  test('closed while no process ran: rejected at the next start', async () => {
    await policy();
    const name = await propose();
    await reconcile(name);
    forge.change(1, { state: 'closed' });
    reconcile = process();
    await reconcile(name);
    expect(revision(name).lifecycle).toBe('Draft');
    expect(forge.pulls).toHaveLength(1);
  });

  test('a merge on the host is reported, and publishes nothing', async () => {
    await policy();
    const name = await propose();
    await reconcile(name);
    forge.change(1, { state: 'merged', merged: { commit: revision(name).commit, by: 'bob' } });
    await reconcile('apps');
    await reconcile(name);
    expect(revision(name).lifecycle).toBe('Proposed');
    expect((await world.events(name)).at(-1)).toMatch(
      /^MergedOutside: .* was merged by bob on the host, which publishes nothing/,
    );
    expect(forge.pulls).toHaveLength(1);
  });

  describe('with publishOn: merge', () => {
    /** The host merges the proposal as a squash; returns the commit. */
    async function merge(name: string, by: string): Promise<string> {
      const { files } = await world.store.content(name);
      const squashed = Object.fromEntries([...files].map(([file, data]) => [`app/${file}`, data.toString('utf8')]));
      const commit = await world.push(path, squashed);
      forge.change(1, { state: 'merged', merged: { commit, by } });
      return commit;
    }

    test('the merge is the publication, in the name of the mapped user', async () => {
      await policy({ publishOn: 'merge' });
      const name = await propose();
      await reconcile(name);
      expect(forge.pulls[0]?.body).toContain('A merge publishes it, if all gates are open');
      const commit = await merge(name, 'BOB');
      await world.store.repository('apps').sync();
      await reconcile('apps');
      await reconcile(name);
      expect(revision(name)).toMatchObject({ lifecycle: 'Published', revision: 1, commit, outOfBand: undefined });
      expect((await world.events(name)).at(-1)).toBe(
        `Approved: published at ${commit}: ${forge.pulls[0]?.url} was merged by BOB`,
      );
      await reconcile(name);
      expect(forge.pulls[0]?.body).toContain('is Published now. Last step: `approve` by `bob@example.com`');
    });

    test('a merge that bypassed a closed gate is out of band, and reported', async () => {
      await policy({ publishOn: 'merge' }, { requiredGates: [{ conditionType: GATE, approveOnly: true }] });
      const name = await propose();
      await reconcile(name);
      const commit = await merge(name, 'bob');
      await world.store.repository('apps').sync();
      reconcile = process();
      await reconcile(name);
      expect(revision(name)).toMatchObject({ lifecycle: 'Published', commit, outOfBand: { reason: 'GateUnmet' } });
      expect((await world.events(name)).at(-1)).toMatch(
        /^OutOfBand: .* was merged by bob although it could not be published, so that it is out of band and is not delivered: .*gate example.com\/Tested is closed/,
      );
    });

    test('a merge by a user who may not approve is out of band where policies require another user', async () => {
      await policy({ publishOn: 'merge' }, { approval: { forbidSelfApproval: true } });
      reconcile = process({ mayApprove: async () => false });
      const name = await propose();
      await reconcile(name);
      await merge(name, 'bob');
      await world.store.repository('apps').sync();
      await reconcile('apps');
      await reconcile(name);
      expect(revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: { reason: 'NotApproved' } });
    });

    test('a merge that is not read yet requests a sync, and is published after it; so is one whose response was lost', async () => {
      await policy({ publishOn: 'merge' });
      const requests = new SyncRequests(clock);
      reconcile = process({ requests });
      const name = await propose();
      await reconcile(name);
      await merge(name, 'bob');
      await reconcile('apps');
      expect(await reconcile(name)).toMatchObject({ requeueAfter: 10_000 });
      expect(requests.has({ namespace: 'default', name: 'apps' })).toBe(true);
      expect(revision(name).lifecycle).toBe('Proposed');
      await world.store.repository('apps').sync();
      reconcile = process({
        store: {
          change: (...args) => world.store.change(...args),
          evaluate: (...args) => world.store.evaluate(...args),
          find: (...args) => world.store.find(...args),
          repositoryOf: (...args) => world.store.repositoryOf(...args),
          onPromotion: (...args) => world.store.onPromotion(...args),
          update: async (...args) => {
            await world.store.update(...args);
            throw new SluiceError('Unavailable', 'the connection was lost');
          },
        },
      });
      await expect(reconcile(name)).rejects.toThrow('the connection was lost');
      reconcile = process();
      await reconcile(name);
      expect(revision(name)).toMatchObject({ lifecycle: 'Published', revision: 1, outOfBand: undefined });
    });

    test('what was merged is not what was proposed: nothing is published', async () => {
      await policy({ publishOn: 'merge' });
      const name = await propose();
      await reconcile(name);
      const commit = await world.push(path, {
        'app/Kptfile': 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: app}\n',
      });
      forge.change(1, { state: 'merged', merged: { commit, by: 'bob' } });
      await world.store.repository('apps').sync();
      await reconcile('apps');
      await reconcile(name);
      expect(revision(name).lifecycle).toBe('Proposed');
      expect((await world.events(name)).at(-1)).toMatch(/^MergeNotPublished: .*its package is not the proposed one/);
    });
  });

  test('polls often while there are changes, seldom in quiet times, and not without proposals', async () => {
    await policy();
    expect(await reconcile('apps')).toBeUndefined();
    const name = await propose();
    await reconcile(name);
    expect(await reconcile('apps')).toMatchObject({ requeueAfter: 10_000 });
    forge.calls.length = 0;
    clock.advance(301_000);
    expect(await reconcile('apps')).toMatchObject({ requeueAfter: 30_000 });
    expect(forge.calls).toEqual(['listUpdated']);
    forge.review(1, 'bob', 'approved', revision(name).commit);
    expect(await reconcile('apps')).toMatchObject({ requeueAfter: 10_000 });
    await reconcile(name);
    await reconcile(name);
    expect(await reconcile('apps')).toBeUndefined();
  });

  test('a webhook wakes the poll of its repository', async () => {
    const requests = new SyncRequests(clock);
    process({ requests });
    requests.add({ namespace: 'default', name: 'apps' }, undefined);
    expect(woken).toEqual(['apps']);
  });

  test('two policies with a review: neither applies, and both are named', async () => {
    await policy();
    const { spec } = await world.client.get(packagePolicyKind, { name: 'review' });
    await world.client.create(packagePolicyKind, { metadata: { name: 'other' }, spec });
    const name = await propose();
    await expect.poll(() => world.policyFor(world.store.get(name)).reviewProblem).toBeDefined();
    await reconcile(name);
    expect(forge.calls).toEqual([]);
    expect(await world.events(name)).toEqual([
      expect.stringMatching(/^PullRequestFailed: the policies other, review all have spec\.review/),
    ]);
  });

  test('a refusal of the host is reported and tried again later; a limit of the host is respected', async () => {
    await policy();
    const name = await propose();
    forge.before = () => {
      throw new SluiceError('Refused', 'status 403; the token of Secret default/forge lacks a permission for it');
    };
    expect(await reconcile(name)).toMatchObject({ requeueAfter: 60_000 });
    expect(await world.events(name)).toEqual([
      'PullRequestFailed: status 403; the token of Secret default/forge lacks a permission for it',
    ]);
    forge.before = () => {
      throw new SluiceError('TooManyRequests', 'status 429', { details: { retryAfterMs: 7000 } });
    };
    expect(await reconcile(name)).toMatchObject({ requeueAfter: 7000 });
    expect(await reconcile('apps')).toBeUndefined();
  });

  test('hostile names in reviews and packages are code, not Markdown', async () => {
    await policy();
    const { name } = await world.draft('apps/app/w1', {
      'a`@all<b>.yaml': 'kind: "```\\n<!-- sluice:end -->"\napiVersion: v1\nmetadata: {name: a}\n',
    });
    await world.store.update(name, { action: 'propose' }, BERTA);
    await reconcile(name);
    const body = forge.pulls[0]?.body ?? '';
    expect(body).toContain("`a'@all<b>.yaml`");
    await set(name, 'True');
    await reconcile(name);
    expect(forge.pulls[0]?.body.match(/sluice:begin/g)).toHaveLength(1);
  });

  describe('requested changes stay', () => {
    /** A proposal whose reviewer requests changes. */
    async function requested(): Promise<string> {
      const name = await propose();
      await reconcile(name);
      await review(1, 'bob', 'changes-requested', revision(name).commit);
      await reconcile(name);
      return name;
    }
    const approve = (name: string) => world.store.update(name, { action: 'approve' }, ANNA);
    const refusal = /gate sluice.dev\/Reviewed is closed/;

    test('whatever a push does with the condition, also while the host does not respond', async () => {
      await policy({ publishOn: 'approval' });
      const name = await requested();
      forge.before = () => {
        throw new SluiceError('Unavailable', 'status 502');
      };
      const kptfile = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n';
      const forged = `${kptfile}status:\n  conditions:\n    - type: sluice.dev/Reviewed\n      status: "True"\n`;
      for (const text of [kptfile, forged]) {
        await world.push(path, { 'app/Kptfile': text }, 'proposed/app/w1');
        await world.store.repository('apps').sync();
        await reconcile(name).catch(() => undefined);
        await expect(approve(name)).rejects.toThrow(refusal);
      }
      expect(await world.events(name)).toContain('PullRequestFailed: status 502');
    });

    test('in another pull request of the branch: closed and opened again, edited, or deleted by users', async () => {
      await policy({ publishOn: 'approval' });
      const name = await requested();
      forge.change(1, { body: 'mine', state: 'closed' });
      await reconcile('apps');
      await reconcile(name);
      expect(forge.pulls).toHaveLength(2);
      await expect(approve(name)).rejects.toThrow(refusal);
      await review(2, 'bob', 'approved', revision(name).commit);
      await reconcile(name);
      await approve(name);
    });

    test('after a rejection and another proposal, until the reviewer decides again', async () => {
      await policy({ publishOn: 'approval' });
      const name = await requested();
      await world.store.update(name, { action: 'reject' }, ANNA);
      await reconcile(name);
      await world.store.update(name, { action: 'propose' }, BERTA);
      forge.change(1, { state: 'closed' });
      await reconcile('apps');
      await reconcile(name);
      expect(forge.pulls).toHaveLength(2);
      expect(revision(name).lifecycle).toBe('Proposed');
      await expect(approve(name)).rejects.toThrow(refusal);
      forge.reviewsOf.set(1, []);
      await review(2, 'carl', 'approved', revision(name).commit);
      await reconcile(name);
      await approve(name);
    });

    test('while two policies have a review, and after a push that makes the condition stale', async () => {
      await policy({ publishOn: 'approval' });
      const name = await propose();
      await reconcile(name);
      await world.push(path, { 'app/b.yaml': 'kind: B\napiVersion: v1\nmetadata: {name: b}\n' }, 'proposed/app/w1');
      await world.store.repository('apps').sync();
      await expect(approve(name)).rejects.toThrow(refusal);
      await reconcile(name);
      const { spec } = await world.client.get(packagePolicyKind, { name: 'review' });
      await world.client.create(packagePolicyKind, { metadata: { name: 'other' }, spec });
      await expect.poll(() => world.policyFor(world.store.get(name)).reviewProblem).toBeDefined();
      await review(1, 'bob', 'changes-requested', revision(name).commit);
      await world.client.delete(packagePolicyKind, { name: 'other' });
      await expect.poll(() => world.policyFor(world.store.get(name)).review).toBeDefined();
      await reconcile(name);
      await expect(approve(name)).rejects.toThrow(refusal);
    });
  });

  test.each([
    ['requests changes', () => forge.review(1, 'carl', 'changes-requested', ''), 'reviews'],
    ['closes it', () => forge.change(1, { state: 'closed' }), 'get'],
    ['changes its base', () => forge.change(1, { base: { branch: 'other' } }), 'get'],
  ])('what is read again before an approval decides: a user %s meanwhile', async (_what, act, method) => {
    await policy();
    const name = await propose();
    await reconcile(name);
    await review(1, 'bob', 'approved', revision(name).commit);
    forge.calls.length = 0;
    let reads = 0;
    forge.before = (called) => {
      if (called !== method) return;
      reads += 1;
      if (reads === (method === 'reviews' ? 2 : 1)) act();
    };
    await reconcile(name);
    expect(revision(name).lifecycle).toBe('Proposed');
  });

  test('a policy that changes while the host responds decides', async () => {
    await policy();
    const name = await propose();
    await reconcile(name);
    await review(1, 'bob', 'approved', revision(name).commit);
    const { spec } = await world.client.get(packagePolicyKind, { name: 'review' });
    const evaluate = world.store.evaluate.bind(world.store);
    let count = 0;
    reconcile = process({
      store: {
        change: (...args) => world.store.change(...args),
        evaluate: async (...args) => {
          const evaluation = await evaluate(...args);
          count += 1;
          const review = { ...spec.review, policy: 'review', approvers: [] } as never;
          return count === 1 ? evaluation : { ...evaluation, policy: { ...evaluation.policy, review } };
        },
        find: (...args) => world.store.find(...args),
        repositoryOf: (...args) => world.store.repositoryOf(...args),
        onPromotion: (...args) => world.store.onPromotion(...args),
        update: (...args) => world.store.update(...args),
      },
    });
    await reconcile(name);
    expect(count).toBe(2);
    expect(revision(name).lifecycle).toBe('Proposed');
  });

  test('rejected and proposed again in the same second is another proposal', async () => {
    await policy();
    const name = await propose();
    await reconcile(name);
    await world.store.update(name, { action: 'reject' }, ANNA);
    await world.store.update(name, { action: 'propose' }, BERTA);
    forge.change(1, { state: 'closed' });
    await reconcile('apps');
    await reconcile(name);
    expect(revision(name).lifecycle).toBe('Proposed');
    expect(forge.pulls).toHaveLength(2);
  });

  test('labels that users removed stay removed, also after a restart', async () => {
    await policy({ labels: ['packages'], reviewers: { users: ['carl'] } });
    const name = await propose();
    await reconcile(name);
    forge.change(1, { labels: [] });
    reconcile = process();
    await reconcile(name);
    expect(forge.pulls[0]?.labels).toEqual([]);
    expect(forge.requested).toEqual(['carl']);
  });

  test('a pull request that a user deleted is opened again', async () => {
    await policy();
    const name = await propose();
    await reconcile(name);
    await set(name, 'True');
    forge.before = (method) => {
      if (method === 'update') throw new SluiceError('NotFound', 'status 404');
    };
    await policyGate();
    await reconcile(name);
    forge.pulls.length = 0;
    forge.before = () => undefined;
    await reconcile(name);
    expect(forge.pulls).toHaveLength(1);

    /** A gate that changes the text of the pull request. */
    async function policyGate(): Promise<void> {
      const { metadata, spec } = await world.client.get(packagePolicyKind, { name: 'review' });
      const requiredGates = [{ conditionType: 'example.com/Other', approveOnly: true }];
      await world.client.update(packagePolicyKind, {
        ...(await world.client.get(packagePolicyKind, { name: metadata.name })),
        spec: { ...spec, requiredGates },
      });
      await expect.poll(() => world.policyFor(world.store.get(name)).requiredGates.length).toBe(2);
    }
  });
});
