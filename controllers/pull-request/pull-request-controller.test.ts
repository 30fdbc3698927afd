import { beforeEach, describe, expect, test } from 'vitest';
import type { QueuedMerge } from '../../src/forge/merge-queue.ts';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { ANNA } from '../../test/support/fixture.ts';
import { git } from '../../test/support/git/git-cli.ts';
import { BERTA, eachProposals, GATE, type Proposals } from '../../test/support/proposal-bench.ts';
import { SyncRequests } from '../repository/sync-requests.ts';

describe('pull-request controller', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(() => {
    at = open();
  });

  test('opens one pull request for a proposal, with its gates and changes, and leaves it alone while nothing changes', async () => {
    await at.policy(
      { labels: ['packages'], reviewers: { users: ['carl'] }, gateChecks: [GATE] },
      { requiredGates: [{ conditionType: GATE, approveOnly: true }] },
    );
    const name = await at.propose();
    await at.reconcile(name);
    const [pull] = at.forge.pulls;
    expect(at.forge.pulls).toHaveLength(1);
    expect(pull).toMatchObject({
      ...{ title: 'Publish app (w1)', labels: ['packages'], state: 'open' },
      ...{ head: { branch: 'proposed/app/w1' }, base: { branch: 'main' } },
    });
    expect(pull?.body).toMatch(
      /^<!-- sluice:begin proposal=[0-9a-f]{16} prepared -->\nPackage revision `apps\.app\.w1`\./,
    );
    expect(pull?.body).toContain(`| \`${GATE}\` | **Missing** |`);
    expect(pull?.body).toContain('Reviews of these users count: `Bob`, `carl`.');
    expect(pull?.body).toContain('```diff\ndiff --git a/Kptfile b/Kptfile\n');
    expect(at.forge.requested).toEqual(['carl']);
    const { commit } = at.revision(name);
    expect(at.forge.checksOf(commit)).toEqual({ 'sluice/ready': 'pending', [`sluice/gate/${GATE}`]: 'pending' });
    const ready = at.forge.checks.get(commit)?.get('sluice/ready');
    expect(ready?.url).toBe(pull?.url);
    expect(ready?.text).toContain(`| \`${GATE}\` | **Missing** |`);
    expect(at.forge.checks.get(commit)?.get(`sluice/gate/${GATE}`)?.text).toContain(`| \`${GATE}\` | **Missing** |`);
    expect(pull?.body).toContain('`/sluice why`, `/sluice approve`');
    expect(at.woken).toEqual(['apps']);
    at.forge.calls.length = 0;
    await at.reconcile(name);
    expect(at.forge.calls).toEqual([]);
    expect(await at.world.events(name)).toEqual([`PullRequestOpened: it is reviewed in ${pull?.url}`]);
  });

  test('one whose base a user changes is closed with a link to the next one, and there is one open, however often that is repeated', async () => {
    await at.policy();
    const name = await at.propose();
    await at.reconcile(name);
    await at.reconcile('apps');
    for (const number of [1, 2]) {
      at.forge.change(number, { base: { branch: 'other' } });
      for (let turn = 0; turn < 3; turn += 1) {
        at.clock.advance(30_000);
        await at.reconcile('apps');
        await at.reconcile(name);
      }
      expect(at.forge.pulls).toHaveLength(number + 1);
      expect(at.forge.pulls[number - 1]).toMatchObject({ state: 'closed', base: { branch: 'other' } });
      expect(at.forge.pulls[number]).toMatchObject({ state: 'open', base: { branch: 'main' } });
      const [comment] = at.forge.commentsOf.get(number) ?? [];
      expect(comment?.body).toContain(`The proposal continues in ${at.forge.pulls[number]?.url}`);
    }
    expect(at.revision(name).lifecycle).toBe('Proposed');
    expect(await at.world.events(name)).toContain(
      `PullRequestClosed: ${at.forge.pulls[0]?.url} was closed: a user has changed its base to other`,
    );
  });

  test('the text shows since when a gate is closed, who can open it, and the upstream, as they change', async () => {
    const { world } = at;
    const blueprints = await world.register('blueprints');
    await world.publish((await world.draft('blueprints/web/w1')).name);
    await at.policy({}, { requiredGates: [{ conditionType: GATE, approveOnly: true }] });
    const source = { type: 'clone', upstream: { revision: 'blueprints.web.w1' } } as const;
    const { name } = await world.store.create('apps', { package: 'app', workspace: 'w1', source }, ANNA);
    await world.store.update(name, { action: 'propose' }, BERTA);
    await at.reconcile(name);
    const row = () => at.forge.pulls[0]?.body.split('\n').find((line) => line.startsWith(`| \`${GATE}\``));
    expect(row()).toContain(' | **Missing** |  | `anyone` | ');
    expect(at.forge.pulls[0]?.body).toContain(`Upstream: \`${blueprints}/web@web/v1\`.`);
    at.clock.advance(60_000);
    const since = '2026-01-01T00:01:00Z';
    await at.set(name, 'False');
    at.clock.advance(60_000);
    await at.reconcile(name);
    expect(row()).toContain(` | **NotTrue** | ${since} | \`anyone\` | `);
  });

  test('a conflict with an edit on the main branch fails the check, in the text, an event and the condition, until it ends', async () => {
    await at.policy({ approvers: [{ user: 'Bob', subject: 'bob@example.com' }] });
    const name = await at.propose();
    await at.reconcile(name);
    const { commit } = at.revision(name);
    const ready = async () => {
      const object = await at.world.client.get(packageRevisionKind, { namespace: 'default', name });
      return object.status?.conditions?.find(({ type }) => type === 'sluice.dev/Ready');
    };
    expect(await ready()).toMatchObject({ status: 'True' });
    const edit = async (text: string | null) => {
      const files = {
        'app/Kptfile': text === null ? null : 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: app}\n',
      };
      const made = await at.world.push(at.path, { ...files, 'app/<b>`x`.yaml': text });
      await at.world.store.repositoryOf(at.revision(name)).refresh();
      await at.reconcile(name);
      return made;
    };
    const made = await edit('a: 1\n');
    expect(at.forge.checksOf(commit)).toEqual({ 'sluice/ready': 'failure' });
    expect(at.forge.checks.get(commit)?.get('sluice/ready')?.text).toContain('conflicts with refs/heads/main');
    expect(at.forge.pulls[0]?.body).toContain(`**Conflict with the main branch:** \`${name} conflicts`);
    expect(at.forge.pulls[0]?.body).toContain('(<b>ˋxˋ.yaml, Kptfile)');
    expect(at.forge.pulls[0]?.body).toContain(`sluice rpkg rebase ${name}`);
    expect((await at.world.events(name)).at(-1)).toMatch(/^Conflicted: /);
    expect(await ready()).toMatchObject({
      status: 'False',
      reason: 'Conflicted',
      message: expect.stringContaining(made),
    });
    await at.review(1, 'Bob', 'approved', commit);
    await at.reconcile(name);
    expect(at.revision(name).lifecycle).toBe('Proposed');
    expect((await at.world.events(name)).at(-1)).toMatch(/conflicts with refs\/heads\/main/);
    await edit(null);
    expect(await ready()).toMatchObject({ status: 'True' });
    expect(at.revision(name).lifecycle).toBe('Published');
  });

  test('a proposal shows why the pull requests of its repository cannot be read, once, and again if the reason changes', async () => {
    await at.policy();
    const name = await at.propose();
    await at.reconcile(name);
    await at.reconcile('apps');
    const fail = (message: string) => {
      at.forge.before = () => {
        throw new SluiceError('Refused', message);
      };
    };
    const failures = async () => (await at.world.events(name)).filter((event) => event.startsWith('PullRequestFailed'));
    fail('This installation has been suspended');
    for (let turn = 0; turn < 3; turn += 1) expect(await at.reconcile('apps')).toMatchObject({ requeueAfter: 60_000 });
    expect(await failures()).toEqual(['PullRequestFailed: This installation has been suspended']);
    fail('the App is not installed');
    await at.reconcile('apps');
    expect(await failures()).toHaveLength(2);
    at.forge.before = () => undefined;
    expect(await at.reconcile('apps')).toMatchObject({ requeueAfter: 10_000 });
  });

  test('a request to run a check again evaluates it and sets all checks of this commit, and of no other', async () => {
    await at.policy();
    const requests = new SyncRequests(at.clock);
    at.restart({ requests });
    const name = await at.propose();
    await at.reconcile(name);
    const { commit } = at.revision(name);
    // It reads changes of the same second once more.
    for (let turn = 0; turn < 2; turn += 1) await at.reconcile('apps');
    at.forge.checks.clear();
    requests.addReview({ namespace: 'default', name: 'apps' }, { rerun: 'f'.repeat(40) });
    at.woken.length = 0;
    await at.reconcile('apps');
    expect(at.woken).toEqual([]);
    requests.addReview({ namespace: 'default', name: 'apps' }, { rerun: commit });
    await at.reconcile('apps');
    expect(at.woken).toEqual([name]);
    await at.reconcile(name);
    expect(at.forge.checksOf(commit)).toEqual({ 'sluice/ready': 'success' });
    expect(requests.takeReview({ namespace: 'default', name: 'apps' }, 'proposals')).toBeUndefined();
  });

  test('the commit of a merge queue gets the checks of its proposal, and a failure where the merge has other content', async () => {
    await at.policy();
    const requests = new SyncRequests(at.clock);
    const waiting: QueuedMerge[] = [];
    const trees = new Map<string, string>();
    let reads = 0;
    const mergeQueue = {
      waiting: async () => {
        reads += 1;
        return waiting;
      },
      treeOf: async (commit: string) => trees.get(commit),
    };
    at.restart({ requests, openForge: () => Object.assign(at.forge, { mergeQueue }) });
    const name = await at.propose();
    await at.reconcile(name);
    await at.reconcile('apps');
    await at.reconcile('apps');
    const before = reads;
    await at.reconcile('apps');
    expect(reads).toBe(before);

    const { commit, path: folder } = at.revision(name);
    const [own] = await at.world.store.repositoryOf(at.revision(name)).git.statObjects([`${commit}:${folder}`]);
    const [same, other] = ['1'.repeat(40), '2'.repeat(40)];
    trees.set(same, own?.oid ?? '').set(other, '3'.repeat(40));
    const number = at.forge.pulls[0]?.number ?? 0;
    const branch = 'gh-readonly-queue/main';
    waiting.push(
      ...[same, other].map((commit) => ({ number, commit, branch })),
      ...[{ number: 99, commit: '4'.repeat(40), branch }],
    );
    requests.addReview({ namespace: 'default', name: 'apps' }, 'merge-queue');
    at.woken.length = 0;
    await at.reconcile('apps');
    expect(at.woken).toEqual([name]);
    await at.reconcile(name);
    expect(at.forge.checksOf(same)).toEqual({ 'sluice/ready': 'success' });
    expect(at.forge.checksOf(other)).toEqual({ 'sluice/ready': 'failure' });
    expect(at.forge.checks.get(other)?.get('sluice/ready')?.title).toMatch(
      /merge changes the package.*remove it from the queue/,
    );
    expect(at.forge.checks.has('4'.repeat(40))).toBe(false);
    // It is read until it is empty, without a further request.
    waiting.length = 0;
    at.woken.length = 0;
    await at.reconcile('apps');
    const emptied = reads;
    // Commits may have waited for its end.
    expect(at.woken).toEqual([name]);
    await at.reconcile('apps');
    expect([reads, at.woken]).toEqual([emptied, [name]]);
  });

  test('a new process finds the pull request, and takes it over as it is', async () => {
    await at.policy();
    const name = await at.propose();
    await at.reconcile(name);
    const before = at.forge.pulls[0];
    at.restart();
    at.forge.calls.length = 0;
    await at.reconcile(name);
    expect(at.forge.pulls).toEqual([before]);
    expect(at.forge.calls).toEqual(['listUpdated', 'listOpen', 'reviews', 'comments', 'setChecks']);
  });

  test('what fails after its effect is not done twice', async () => {
    await at.policy({ labels: ['packages'] });
    const name = await at.propose();
    for (const method of ['open', 'update', 'setChecks', 'addLabels', 'requestReviewers', 'reviews']) {
      at.restart();
      at.forge.after = (called) => {
        if (called === method) throw new SluiceError('Unavailable', 'status 502');
      };
      await at.reconcile(name).catch(() => undefined);
    }
    at.forge.after = () => undefined;
    at.restart();
    await at.reconcile(name);
    expect(at.forge.pulls).toHaveLength(1);
    expect(at.forge.pulls[0]?.body.match(/sluice:begin/g)).toHaveLength(1);
  });

  test('the text of a user stays in a pull request that is adopted', async () => {
    await at.policy();
    const name = await at.propose();
    await at.forge.open({ head: 'proposed/app/w1', base: 'main', title: 'Mine', body: 'Please look.\r\nThanks.' });
    await at.reconcile(name);
    expect(at.forge.pulls).toHaveLength(1);
    expect(at.forge.pulls[0]).toMatchObject({ title: 'Mine' });
    expect(at.forge.pulls[0]?.body).toMatch(/^Please look\.\nThanks\.\n\n<!-- sluice:begin/);
    expect(await at.world.events(name)).toEqual([`PullRequestAdopted: it is reviewed in ${at.forge.pulls[0]?.url}`]);
  });

  test('a check follows its gate: pending, failed, open', async () => {
    await at.policy({}, { requiredGates: [{ conditionType: GATE, approveOnly: true }] });
    const name = await at.propose();
    await at.set(name, 'False');
    await at.reconcile(name);
    expect(at.forge.checksOf(at.revision(name).commit)).toEqual({ 'sluice/ready': 'failure' });
    await at.set(name, 'True');
    await at.reconcile(name);
    expect(at.forge.checksOf(at.revision(name).commit)).toEqual({ 'sluice/ready': 'success' });
    expect(at.forge.pulls[0]?.body).toContain(`| \`${GATE}\` | Open |`);
  });

  test('closing the pull request rejects the proposal, with the comment; a new proposal gets a new one', async () => {
    await at.policy();
    const name = await at.propose();
    await at.reconcile(name);
    at.forge.closings.set(1, { by: 'bob', comment: 'not\nnow @all' });
    at.forge.change(1, { state: 'closed' });
    await at.reconcile('apps');
    expect(at.woken).toContain(name);
    await at.reconcile(name);
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Draft' });
    const reason = `${at.forge.pulls[0]?.url} was closed by bob: not now @all`;
    expect(at.revision(name).record?.steps.at(-1)).toMatchObject({ action: 'reject', reason });
    await at.reconcile(name);
    at.clock.advance(1000);
    await at.world.store.update(name, { action: 'propose' }, BERTA);
    at.restart();
    await at.reconcile(name);
    expect(at.forge.pulls.map(({ state }) => state)).toEqual(['closed', 'open']);
    expect(at.revision(name).lifecycle).toBe('Proposed');
  });

  test('a process that stops reports no failure of the host', async () => {
    await at.policy();
    const name = await at.propose();
    const stop = new AbortController();
    at.forge.before = () => {
      stop.abort(new SluiceError('Unavailable', 'the controller is stopping'));
      stop.signal.throwIfAborted();
    };
    await expect(at.reconcile(name, stop.signal)).rejects.toThrow('the controller is stopping');
    expect(await at.world.events(name)).toEqual([]);
  });

  test('a look at the repository closes no connections that a proposal is using', async () => {
    await at.policy();
    const name = await at.propose();
    let look: Promise<unknown> | undefined;
    at.forge.before = () => {
      look ??= at.reconcile('apps');
    };
    await at.reconcile(name);
    await look;
    expect(at.forge.calls).not.toContain('close');
    await at.world.store.update(name, { action: 'reject' }, ANNA);
    await at.reconcile(name);
    at.clock.advance(601_000);
    for (let times = 0; times < 2; times += 1) await at.reconcile('apps');
    expect(at.forge.calls).toContain('close');
  });

  test('closed while no process ran: rejected at the next start', async () => {
    await at.policy();
    const name = await at.propose();
    await at.reconcile(name);
    at.forge.change(1, { state: 'closed' });
    at.restart();
    await at.reconcile(name);
    expect(at.revision(name).lifecycle).toBe('Draft');
    expect(at.forge.pulls).toHaveLength(1);
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

  test('two policies with a review: neither applies, and both are named', async () => {
    await at.policy();
    const { spec } = await at.world.client.get(packagePolicyKind, { name: 'review' });
    await at.world.client.create(packagePolicyKind, { metadata: { name: 'other' }, spec });
    const name = await at.propose();
    await expect.poll(() => at.world.policyFor(at.world.store.get(name)).reviewProblem).toBeDefined();
    await at.reconcile(name);
    expect(at.forge.calls).toEqual([]);
    expect(await at.world.events(name)).toEqual([
      expect.stringMatching(/^PullRequestFailed: the policies other, review all have spec\.review/),
    ]);
  });

  test('a refusal of the host is reported and tried again later; a limit of the host is respected', async () => {
    await at.policy();
    const name = await at.propose();
    at.forge.before = () => {
      throw new SluiceError('Refused', 'status 403; the token of Secret default/forge lacks a permission for it');
    };
    expect(await at.reconcile(name)).toMatchObject({ requeueAfter: 60_000 });
    expect(await at.world.events(name)).toEqual([
      'PullRequestFailed: status 403; the token of Secret default/forge lacks a permission for it',
    ]);
    at.forge.before = () => {
      throw new SluiceError('TooManyRequests', 'status 429', { details: { retryAfterMs: 7000 } });
    };
    expect(await at.reconcile(name)).toMatchObject({ requeueAfter: 7000 });
    expect(await at.reconcile('apps')).toBeUndefined();
  });

  test('hostile names in reviews and packages are code, not Markdown', async () => {
    await at.policy();
    const { name } = await at.world.draft('apps/app/w1', {
      'a`@all<b>.txt': '```\n<!-- sluice:end -->\n',
      'a.yaml': 'kind: "`@all<b>\\n<!-- sluice:end -->"\napiVersion: v1\nmetadata: {name: a}\n',
    });
    await at.world.store.update(name, { action: 'propose' }, BERTA);
    await at.reconcile(name);
    const body = at.forge.pulls[0]?.body ?? '';
    expect(body).toContain('`aˋ@all<b>.txt`');
    expect(body).toMatch(/Added `ˋ@all<b>[^`\n]*<!-- sluice:end -->[^`\n]*`/);
    await at.set(name, 'True');
    await at.reconcile(name);
    expect(at.forge.pulls[0]?.body.match(/sluice:begin/g)).toHaveLength(1);
  });

  test('rejected and proposed again in the same second is another proposal', async () => {
    await at.policy();
    const name = await at.propose();
    await at.reconcile(name);
    await at.world.store.update(name, { action: 'reject' }, ANNA);
    await at.world.store.update(name, { action: 'propose' }, BERTA);
    at.forge.change(1, { state: 'closed' });
    await at.reconcile('apps');
    await at.reconcile(name);
    expect(at.revision(name).lifecycle).toBe('Proposed');
    expect(at.forge.pulls).toHaveLength(2);
  });

  test('labels that users removed stay removed, also after a restart', async () => {
    await at.policy({ labels: ['packages'], reviewers: { users: ['carl'] } });
    const name = await at.propose();
    await at.reconcile(name);
    at.forge.change(1, { labels: [] });
    at.restart();
    await at.reconcile(name);
    expect(at.forge.pulls[0]?.labels).toEqual([]);
    expect(at.forge.requested).toEqual(['carl']);
  });

  test('a pull request that a user deleted is opened again', async () => {
    await at.policy();
    const name = await at.propose();
    await at.reconcile(name);
    await at.set(name, 'True');
    at.forge.before = (method) => {
      if (method === 'update') throw new SluiceError('NotFound', 'status 404');
    };
    await policyGate();
    await at.reconcile(name);
    at.forge.pulls.length = 0;
    at.forge.before = () => undefined;
    await at.reconcile(name);
    expect(at.forge.pulls).toHaveLength(1);

    /** A gate that changes the text of the pull request. */
    async function policyGate(): Promise<void> {
      const { metadata, spec } = await at.world.client.get(packagePolicyKind, { name: 'review' });
      const requiredGates = [{ conditionType: 'example.com/Other', approveOnly: true }];
      await at.world.client.update(packagePolicyKind, {
        ...(await at.world.client.get(packagePolicyKind, { name: metadata.name })),
        spec: { ...spec, requiredGates },
      });
      await expect.poll(() => at.world.policyFor(at.world.store.get(name)).requiredGates.length).toBe(2);
    }
  });

  describe('a closed pull request that is opened again', () => {
    /** Closed by a user, and its branch restored on the host as it was. */
    async function restored(): Promise<string> {
      const name = await at.propose();
      await at.reconcile(name);
      const { commit } = at.revision(name);
      at.forge.review(1, 'bob', 'approved', commit);
      // The clock of the host is ahead of the one of the test.
      at.clock.advance(Date.UTC(2031, 0, 1) - at.clock.now());
      at.forge.change(1, { state: 'closed' });
      at.restart();
      await at.reconcile(name);
      expect(at.revision(name).lifecycle).toBe('Draft');
      await at.reconcile(name);
      git(at.path, ['update-ref', 'refs/heads/proposed/app/w1', commit]);
      await at.world.store.repository('apps').sync();
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Proposed', commit });
      return name;
    }

    test('is proposed again in the same pull request, and earlier approvals do not count', async () => {
      await at.policy();
      const name = await restored();
      for (let turn = 0; turn < 2; turn += 1) {
        // Its end is applied once.
        at.restart();
        await at.reconcile(name);
        expect(at.revision(name).lifecycle).toBe('Proposed');
        expect(forgePulls()).toEqual(['closed']);
      }
      expect((await at.world.events(name)).at(-1)).toMatch(/^PullRequestClosed: .*open it again on the host/);
      at.forge.change(1, { state: 'open' });
      await at.reconcile('apps');
      await at.reconcile(name);
      expect(at.revision(name).lifecycle).toBe('Proposed');
      expect(forgePulls()).toEqual(['open']);
      const events = await at.world.events(name);
      expect(events).toContainEqual(expect.stringMatching(/^PullRequestReopened: .*\/1 was opened again/));
      expect(events).toContainEqual(
        expect.stringMatching(/^ReviewNotCounted: .*rejected since; a new review is needed/),
      );
      at.forge.skip(2 * 365 * 86_400);
      await at.review(1, 'bob', 'approved', at.revision(name).commit);
      await at.reconcile(name);
      expect(at.revision(name).lifecycle).toBe('Published');
    });

    const forgePulls = () => at.forge.pulls.map(({ state }) => state);
  });

  test('a proposal that gets a new pull request is linked from the one before', async () => {
    await at.policy();
    const name = await at.propose();
    await at.reconcile(name);
    at.forge.change(1, { state: 'closed' });
    await at.reconcile('apps');
    await at.reconcile(name);
    await at.reconcile(name);
    at.clock.advance(1000);
    await at.world.store.update(name, { action: 'propose' }, BERTA);
    at.restart();
    await at.reconcile(name);
    const [link] = at.forge.commentsOf.get(1) ?? [];
    expect(link?.body).toContain(`The proposal continues in ${at.forge.pulls[1]?.url}`);
    expect(at.forge.commentsOf.get(2)).toBeUndefined();
  });
});
