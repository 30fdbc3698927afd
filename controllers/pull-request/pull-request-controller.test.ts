import { beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { ANNA } from '../../test/support/fixture.ts';
import { BERTA, eachProposals, GATE, type Proposals } from '../../test/support/proposal-bench.ts';

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
      expect(at.forge.pulls[number - 1]?.body).toMatch(
        /changed its base to `other`: nothing that happens here has an effect/,
      );
      expect(at.forge.pulls[number - 1]?.body).not.toContain('rejects');
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
    await policyGate();
    at.forge.pulls.length = 0;
    expect(await at.reconcile(name)).toMatchObject({ requeueAfter: 60_000 });
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
