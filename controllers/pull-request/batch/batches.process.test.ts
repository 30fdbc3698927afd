import { beforeEach, describe, expect, test, vi } from 'vitest';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import type { ExplainedRevision } from '../../../src/package/api/explain/explainer.ts';
import { DEFAULT_POLICY } from '../../../src/package/model/policy/policy.ts';
import { packagePolicyKind } from '../../../src/resource/kinds/sluice/package-policy.ts';
import { ANNA } from '../../../test/support/fixture.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import { BERTA, eachProposals, GATE, type Proposals } from '../../../test/support/proposal-bench.ts';
import { protectMain } from '../../../test/support/protected-main.ts';
import type { ReviewRequest } from '../../repository/sync-requests.ts';
import { pullRequestExplainer } from '../explain-pull-request.ts';

const CARLA = { actor: { name: 'carla' }, face: 'cli' } as const;

describe('a pull request of several proposals', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(() => {
    at = open();
    at.serveBranches();
  });

  const creations = () => at.forge.calls.filter((method) => method === 'open').length;
  const branches = () => git(at.path, ['for-each-ref', '--format=%(refname:short)', 'refs/heads/sluice']).trim();
  const headOf = (number: number) => at.forge.get(number).then(({ head }) => head.commit);
  const treeAt = (commit: string, path: string) => git(at.path, ['rev-parse', `${commit}:${path}`]).trim();
  const close = () => {
    at.forge.closings.set(1, { by: 'bob', comment: 'not now' });
    at.forge.change(1, { state: 'closed', closedAt: new Date(at.clock.now()).toISOString() });
  };
  const lifecycles = (names: readonly string[]) => names.map((name) => at.world.store.find(name)?.lifecycle);

  test('a fan-out of 50 proposals is one pull request, with the packages of all, their gates and one check', async () => {
    await at.policy(
      { batch: {}, labels: ['packages'] },
      { requiredGates: [{ conditionType: GATE, approveOnly: true }] },
    );
    const packages = Array.from({ length: 50 }, (_, n) => `app-${String(n).padStart(2, '0')}`);
    const names = await at.proposeAll(...packages);
    await at.settle();
    expect(creations()).toBe(1);
    const [pull] = at.forge.pulls;
    expect(pull).toMatchObject({ state: 'open', base: { branch: 'main' }, labels: ['packages'] });
    expect(pull?.title).toBe('Publish app-00, app-01, app-02 and 47 more (w1)');
    const head = await headOf(1);
    for (const one of packages) expect(treeAt(head, one)).toBe(treeAt(`proposed/${one}/w1`, one));
    const changed = git(at.path, ['diff', '--name-only', 'main', head]).trim().split('\n');
    expect([...new Set(changed.map((file) => file.split('/')[0]))]).toEqual(packages);
    for (const name of names) expect(pull?.body).toContain(`### \`${name}\``);
    expect(pull?.body.length).toBeLessThan(60_000);
    expect(at.forge.checksOf(head)).toEqual({ 'sluice/ready': 'pending' });
    expect(at.forge.checks.get(head)?.get('sluice/ready')?.title).toMatch(
      /^50 of 50 packages are not ready: apps\.app-00/,
    );
    expect(lifecycles(names)).toEqual(names.map(() => 'Proposed'));
    at.forge.calls.length = 0;
    await at.settle(5000);
    expect(at.forge.calls.filter((method) => /^(open|update|add|set|request)/.test(method))).toEqual([]);
  });

  test('a merge publishes each package at its commit, with a tag for each', async () => {
    await at.policy({ batch: {}, publishOn: 'merge' });
    const names = await at.proposeAll('api', 'web');
    await at.settle();
    const explainer = pullRequestExplainer(at.world.store);
    const explained = { evaluation: await at.world.store.evaluate(names[0] ?? '') } as ExplainedRevision;
    const { reasons } = await explainer.explain(explained, {
      disabled: [],
      resolvers: [],
      running: true,
      now: 0,
      actor: '',
    });
    expect(reasons?.[0]?.message).toContain(`in the pull request of the branch ${at.forge.pulls[0]?.head.branch} on`);
    const commit = await at.mergeAs(1, 'bob');
    await at.settle();
    for (const name of names)
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', revision: 1, commit, outOfBand: undefined });
    expect(git(at.path, ['tag', '-l']).trim().split('\n')).toEqual(['api/v1', 'web/v1']);
    expect(at.forge.pulls).toHaveLength(1);
    expect(at.forge.pulls[0]?.body).toContain('- `apps.web.w1`: Published, `approve` by `bob@example.com`');
    expect(branches()).toBe('');
  });

  test('a command that was not read before the end gets a reply', async () => {
    await at.policy({ batch: {}, publishOn: 'merge' });
    const names = await at.proposeAll('api', 'web');
    await at.settle();
    at.forge.comment(1, 'bob', '/sluice why');
    await at.settle();
    for (const name of names) await at.world.store.update(name, { action: 'approve' }, ANNA);
    at.forge.comment(1, 'bob', '/sluice approve');
    await at.settle();
    expect(at.forge.pulls).toMatchObject([{ state: 'closed' }]);
    const reply = at.forge.commentsOf.get(1)?.find(({ isOwn }) => isOwn)?.body;
    expect(reply).toContain('**Refused**: `this pull request: no package is proposed here any more`');
    expect(reply).toContain('Done: `apps.api.w1: see below`');
  });

  test('a command by which the packages were approved gets no refusal, although the response was lost', async () => {
    await at.policy({ batch: {} });
    await at.proposeAll('api', 'web');
    await at.settle();
    at.clock.advance(Date.UTC(2031, 0, 1) - at.clock.now());
    at.forge.skip(366 * 86_400);
    const update = at.world.store.update.bind(at.world.store);
    const spy = vi.spyOn(at.world.store, 'update').mockImplementation(async (...args) => {
      const updated = await update(...args);
      if (args[2].dryRun !== true) throw new SluiceError('Unavailable', 'the connection was lost');
      return updated;
    });
    at.forge.comment(1, 'bob', '/sluice approve');
    await at.settle(60_000);
    spy.mockRestore();
    await at.settle(60_000);
    const reply = at.forge.commentsOf.get(1)?.find(({ isOwn }) => isOwn)?.body;
    expect(reply).toContain('Done: `apps.api.w1, apps.web.w1: approved`');
    expect(reply).not.toContain('Refused');
  });

  test('a merge publishes a package with a closed gate out of band, and the others as approved', async () => {
    await at.policy({ batch: {}, publishOn: 'merge' }, { requiredGates: [{ conditionType: GATE, approveOnly: true }] });
    const [api = '', web = ''] = await at.proposeAll('api', 'web');
    await at.set(api, 'True');
    await at.settle();
    await at.mergeAs(1, 'bob');
    await at.settle();
    expect(at.revision(api)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    expect(at.revision(web)).toMatchObject({ lifecycle: 'Published', outOfBand: { reason: 'GateUnmet' } });
    const reported = (at.forge.commentsOf.get(1) ?? []).filter(({ body }) => body.includes('### Out of band'));
    expect(reported).toHaveLength(1);
    expect(reported[0]?.body).toMatch(/^- `apps.web.w1`: `GateUnmet`: `.*example.com\/Tested/m);
    expect(reported[0]?.body).not.toContain('apps.api.w1');
    const { body } = at.forge.pulls[0] ?? {};
    expect(body).toMatch(/^- `apps.web.w1`: Published, \*\*out of band\*\* \(`GateUnmet`: `.*`\)$/m);
    expect(body).toContain('- `apps.api.w1`: Published, `approve` by `bob@example.com`');
  });

  test('an approving review publishes each package, after which the pull request is closed with what became of them', async () => {
    await at.policy({ batch: {} });
    const names = await at.proposeAll('api', 'web');
    await at.settle();
    at.forge.review(1, 'bob', 'approved', await headOf(1));
    await at.settle();
    expect(lifecycles(names)).toEqual(['Published', 'Published']);
    expect(at.forge.pulls).toMatchObject([{ state: 'closed' }]);
    expect(at.forge.pulls[0]?.body).toContain('- `apps.api.w1`: Published, `approve` by `bob@example.com`');
    expect(branches()).toBe('');
  });

  test('a change of one package revokes the approval of this one only', async () => {
    await at.policy({ batch: {} }, { requiredGates: [{ conditionType: GATE, approveOnly: true }] });
    const [api = '', web = ''] = await at.proposeAll('api', 'web');
    await at.settle();
    at.forge.review(1, 'bob', 'approved', await headOf(1));
    await at.settle();
    await at.world.push(at.path, { 'web/a.yaml': 'kind: A\napiVersion: v1\nmetadata: {name: b}\n' }, 'proposed/web/w1');
    await at.world.store.repository('apps').sync();
    for (const name of [api, web]) await at.set(name, 'True');
    await at.settle();
    expect(lifecycles([api, web])).toEqual(['Published', 'Proposed']);
    expect(at.forge.pulls).toMatchObject([{ state: 'open' }]);
    expect(at.forge.pulls[0]?.body).not.toContain('### `apps.api.w1`');
    at.forge.review(1, 'bob', 'approved', await headOf(1));
    await at.settle();
    expect(lifecycles([api, web])).toEqual(['Published', 'Published']);
  });

  test('requested changes close the gate of every package', async () => {
    await at.policy({ batch: {} });
    const names = await at.proposeAll('api', 'web');
    await at.settle();
    at.forge.review(1, 'carl', 'changes-requested', await headOf(1));
    await at.settle();
    for (const name of names) {
      const conditions = at.revision(name).kptfile?.status?.conditions;
      expect(conditions).toContainEqual(expect.objectContaining({ reason: 'ChangesRequested', status: 'False' }));
    }
    at.forge.review(1, 'bob', 'approved', await headOf(1));
    await at.settle();
    expect(lifecycles(names)).toEqual(['Proposed', 'Proposed']);
  });

  test('closed by a user: each is rejected with the reason; a new proposal is in a new pull request', async () => {
    await at.policy({ batch: {} });
    const names = await at.proposeAll('api', 'web');
    await at.settle();
    close();
    await at.settle();
    expect(lifecycles(names)).toEqual(['Draft', 'Draft']);
    for (const name of names)
      expect(at.revision(name).record?.steps.at(-1)).toMatchObject({
        action: 'reject',
        reason: expect.stringContaining('was closed by bob: not now'),
      });
    const branch = at.forge.pulls[0]?.head.branch;
    expect(branches()).toBe(branch);
    expect(at.forge.pulls[0]?.body).toContain('Open this pull request again');
    at.clock.advance(1000);
    for (const name of names) await at.world.store.update(name, { action: 'propose' }, BERTA);
    await at.settle();
    expect(at.forge.pulls.map(({ state }) => state)).toEqual(['closed', 'open']);
    expect(branches()).toBe(at.forge.pulls[1]?.head.branch);
    expect(at.forge.pulls[0]?.body).not.toContain('Open this pull request again');
  });

  describe('that a user has closed and opens again', () => {
    async function closed(): Promise<readonly string[]> {
      await at.policy({ batch: {} }, { approval: { forbidSelfApproval: true } });
      const names = await at.proposeAll('api', 'web');
      await at.settle();
      at.forge.review(1, 'bob', 'changes-requested', await headOf(1));
      close();
      await at.settle();
      expect(lifecycles(names)).toEqual(['Draft', 'Draft']);
      return names;
    }

    test.each([
      { what: 'the same process', restarts: false },
      { what: 'another process', restarts: true },
    ])('proposes its packages again, in the name of who had proposed them: $what', async ({ restarts }) => {
      const names = await closed();
      await at.settle(3_600_000);
      if (restarts) at.restart();
      at.forge.change(1, { state: 'open' });
      await at.settle();
      expect(lifecycles(names)).toEqual(['Proposed', 'Proposed']);
      expect(at.forge.pulls.map(({ state }) => state)).toEqual(['open']);
      expect(at.forge.pulls[0]?.body).toContain('### `apps.api.w1`');
      for (const name of names) {
        const step = at.revision(name).record?.steps.at(-1);
        expect(step).toMatchObject({ action: 'propose', by: 'berta', reason: expect.stringContaining('opened again') });
        expect(await at.world.events(name)).toContainEqual(expect.stringMatching(/^PullRequestReopened: /));
      }
      at.forge.skip(3600);
      at.forge.review(1, 'bob', 'approved', await headOf(1));
      await at.settle();
      expect(lifecycles(names)).toEqual(['Published', 'Published']);
      expect(branches()).toBe('');
    });

    test('leaves a package a draft that has changed since, and one that was rejected by itself', async () => {
      await at.policy({ batch: {} });
      const names = await at.proposeAll('api', 'db', 'web');
      await at.settle();
      await at.world.store.update('apps.db.w1', { action: 'reject' }, BERTA);
      close();
      await at.settle();
      const files = new Map([['a.yaml', Buffer.from('kind: A\napiVersion: v1\nmetadata: {name: b}\n')]]);
      await at.world.store.change('apps.web.w1', { files }, ANNA);
      at.forge.change(1, { state: 'open' });
      await at.settle(60_000);
      expect(lifecycles(names)).toEqual(['Proposed', 'Draft', 'Draft']);
      expect(git(at.path, ['ls-tree', '--name-only', await headOf(1)]).split('\n')).not.toContain('web');
    });

    test('proposes the others where one may not be proposed any more, which an Event says', async () => {
      await at.policy({ batch: {} });
      const names = await at.proposeAll('api', 'web');
      await at.settle();
      close();
      await at.settle();
      const gated = { requiredGates: [{ conditionType: GATE }], selector: { packages: ['api'] } };
      await at.world.client.create(packagePolicyKind, { metadata: { name: 'gated' }, spec: gated });
      await expect.poll(() => at.world.policyFor(at.revision('apps.api.w1')).requiredGates).toHaveLength(1);
      at.forge.change(1, { state: 'open' });
      const [db = ''] = await at.proposeAll('db');
      await at.settle(120_000);
      expect(lifecycles([...names, db])).toEqual(['Draft', 'Proposed', 'Proposed']);
      expect(await at.world.events('apps.api.w1')).toContainEqual(
        expect.stringMatching(/^NotProposed: .* was opened again, but: .*example\.com\/Tested/),
      );
      const head = git(at.path, ['ls-tree', '--name-only', await headOf(1)])
        .trim()
        .split('\n');
      expect(head).toEqual(['README.md', 'db', 'web']);
    });

    test('is closed again when none of its packages is as it was; its branch goes after a week', async () => {
      const names = await closed();
      await at.settle(8 * 86_400_000);
      expect(branches()).toBe('');
      expect(at.forge.pulls[0]?.body).not.toContain('Open this pull request again');
      at.forge.change(1, { state: 'open' });
      await at.settle();
      expect(lifecycles(names)).toEqual(['Draft', 'Draft']);
    });
  });

  test('a proposal joins, another one leaves; maxPackages splits', async () => {
    await at.policy({ batch: { maxPackages: 2 } });
    const [api = ''] = await at.proposeAll('api');
    await at.settle();
    const [web = ''] = await at.proposeAll('web');
    await at.settle();
    expect(at.forge.pulls).toHaveLength(1);
    expect(await at.world.events(web)).toContain(`PullRequestOpened: it is reviewed in ${at.forge.pulls[0]?.url}`);
    expect(at.forge.pulls[0]?.title).toBe('Publish api, web (w1)');
    expect(treeAt(await headOf(1), 'web')).toBe(treeAt('proposed/web/w1', 'web'));
    await at.proposeAll('db');
    await at.settle();
    expect(at.forge.pulls).toHaveLength(2);
    await at.world.store.update(api, { action: 'reject' }, { actor: { name: 'berta' }, face: 'cli' });
    await at.settle();
    const titles = () => at.forge.pulls.map(({ title }) => title);
    expect(titles()).toEqual(['Publish web (w1)', 'Publish db (w1)']);
    at.forge.change(2, { title: 'mine' });
    await at.proposeAll('cache', 'dns');
    await at.settle(60_000);
    expect(titles()).toEqual(['Publish cache, web (w1)', 'mine']);
    expect(
      git(at.path, ['ls-tree', '--name-only', await headOf(1)])
        .trim()
        .split('\n'),
    ).toEqual(['README.md', 'cache', 'web']);
  });

  test('a new process finds the pull request; a user who removed the marker changes nothing', async () => {
    await at.policy({ batch: {} });
    await at.proposeAll('api', 'web');
    await at.settle();
    at.restart();
    await at.settle();
    expect(at.forge.pulls).toHaveLength(1);
    at.forge.change(1, { body: 'mine' });
    at.restart();
    await at.settle();
    expect(at.forge.pulls).toHaveLength(1);
    expect(at.forge.pulls[0]?.body).toMatch(
      /^mine\n\n<!-- sluice:begin proposal=[0-9a-f]{16},[0-9a-f]{16} prepared -->/,
    );
  });

  test('a commit that a user pushes to the branch is taken back, with a comment', async () => {
    await at.policy({ batch: {} });
    await at.proposeAll('api', 'web');
    await at.settle();
    const branch = (await at.forge.get(1)).head.branch;
    const pushed = await at.world.push(at.path, { 'web/a.yaml': 'kind: B\n', 'evil.txt': 'x\n' }, branch);
    at.forge.review(1, 'bob', 'approved', pushed);
    await at.settle();
    const head = await headOf(1);
    expect(git(at.path, ['ls-tree', '--name-only', head])).not.toContain('evil.txt');
    expect(at.forge.commentsOf.get(1)?.[0]?.body).toContain(`The commit \`${pushed}\``);
    expect(at.world.store.find('apps.api.w1')?.lifecycle).toBe('Published');
    expect(at.world.store.find('apps.web.w1')?.lifecycle).toBe('Proposed');
    expect(treeAt(head, 'web')).toBe(treeAt('proposed/web/w1', 'web'));
  });

  test('a command is for all packages, or for the one that it names; there is one reply', async () => {
    await at.policy({ batch: {} }, { requiredGates: [{ conditionType: GATE, approveOnly: true }] });
    const names = await at.proposeAll('api', 'db', 'web');
    await at.settle();
    at.forge.comment(1, 'bob', '/sluice reject apps.wbe.w1 typo');
    at.forge.comment(1, 'bob', '/sluice reject apps.web.w1 too large');
    at.forge.comment(1, 'bob', `/sluice set ${GATE} True tested`);
    at.forge.comment(1, 'mallory', '/sluice approve');
    at.forge.comment(1, 'bob', '/sluice why');
    await at.settle(60_000);
    expect(lifecycles(names)).toEqual(['Proposed', 'Proposed', 'Draft']);
    expect(at.revision('apps.web.w1').record?.steps.at(-1)?.reason).toMatch(/^too large \(comment /);
    const own = (at.forge.commentsOf.get(1) ?? []).filter(({ author }) => author === 'sluice');
    expect(own).toHaveLength(2);
    const reply = own.find(({ body }) => body.includes('The last commands'))?.body ?? '';
    expect(reply).toContain('**Refused**: `apps.api.w1: apps.wbe.w1 is not proposed in this pull request`');
    expect(reply).toContain('Done: `apps.web.w1: rejected`');
    expect(reply).toContain(`Done: \`apps.api.w1, apps.db.w1: ${GATE} is True\``);
    at.forge.comment(1, 'bob', '/sluice approve');
    await at.settle();
    expect(lifecycles(names)).toEqual(['Published', 'Published', 'Draft']);
  });

  test('what ends while no process runs is finished by the next one', async () => {
    await at.policy({ batch: {} });
    const names = await at.proposeAll('api', 'web');
    await at.settle();
    for (const name of names) await at.world.store.update(name, { action: 'approve' }, CARLA);
    expect(at.forge.pulls).toMatchObject([{ state: 'open' }]);
    at.restart();
    await at.settle();
    expect(at.forge.pulls).toMatchObject([{ state: 'closed' }]);
    expect(at.forge.pulls[0]?.body).toContain('- `apps.api.w1`: Published, `approve` by `carla`');
    expect(branches()).toBe('');
  });

  test('packages that a process publishes before it has looked at their pull request leave none open', async () => {
    await at.policy({ batch: {} });
    const names = await at.proposeAll('api', 'web');
    await at.settle();
    at.forge.review(1, 'bob', 'approved', await headOf(1));
    at.restart();
    for (const name of names) await at.reconcile(name);
    expect(lifecycles(names)).toEqual(['Published', 'Published']);
    for (const name of names) await at.reconcile(name);
    await at.reconcile('apps:batches');
    expect(at.forge.pulls).toMatchObject([{ state: 'closed' }]);
  });

  test('packages that were just published get no other pull request', async () => {
    await at.policy({ batch: {}, publishOn: 'merge' });
    const names = await at.proposeAll('api', 'web');
    await at.settle();
    await at.mergeAs(1, 'bob');
    await at.reconcile('apps');
    for (const name of names) await at.reconcile(name);
    expect(lifecycles(names)).toEqual(['Published', 'Published']);
    at.clock.advance(60_000);
    await at.reconcile('apps:batches');
    expect(at.forge.pulls).toMatchObject([{ state: 'merged' }]);
  });

  test('an end of the process before or after any call makes no second pull request, and loses nothing', async () => {
    await at.policy({ batch: {}, labels: ['packages'], publishOn: 'merge' });
    const names = await at.proposeAll('api', 'web');
    for (const when of ['before', 'after'] as const)
      for (const method of ['open', 'setChecks', 'addLabels', 'update', 'reviews', 'get']) {
        at.restart();
        let isLost = false;
        at.forge[when] = (called) => {
          isLost ||= called === method;
          if (isLost) throw new SluiceError('Unavailable', 'the process has ended');
        };
        await at.settle(8000);
        at.forge[when] = () => undefined;
      }
    at.restart();
    await at.settle();
    expect(at.forge.pulls).toHaveLength(1);
    expect(at.forge.pulls[0]?.body.match(/sluice:begin/g)).toHaveLength(1);
    await at.mergeAs(1, 'bob');
    at.restart();
    await at.settle();
    expect(lifecycles(names)).toEqual(['Published', 'Published']);
    expect(branches()).toBe('');
  });

  test('a package that a merge did not contain yet gets another pull request', async () => {
    await at.policy({ batch: {}, publishOn: 'merge' });
    const [api = ''] = await at.proposeAll('api');
    await at.settle();
    const before = await headOf(1);
    const [web = ''] = await at.proposeAll('web');
    await at.settle();
    const branch = (await at.forge.get(1)).head.branch;
    // The host merged the head of just before.
    git(at.path, ['update-ref', `refs/heads/${branch}`, before]);
    await at.mergeAs(1, 'bob');
    await at.settle(60_000);
    expect(at.revision(api)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    expect(at.revision(web).lifecycle).toBe('Proposed');
    expect(at.forge.pulls.map(({ state }) => state)).toEqual(['merged', 'open']);
    await at.mergeAs(2, 'bob');
    await at.settle();
    expect(at.revision(web)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  });

  test('a package that was edited on the main branch gets a pull request of its own, which shows the conflict', async () => {
    await at.policy({ batch: {}, publishOn: 'merge' });
    const [api = '', web = ''] = await at.proposeAll('api', 'web');
    await at.settle();
    await at.world.push(at.path, {
      'web/Kptfile': 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: web}\n',
    });
    await at.world.store.repository('apps').sync();
    await at.settle();
    expect(at.forge.pulls.map(({ head }) => head.branch.replace(/-.*/, ''))).toEqual([
      expect.stringMatching(/^sluice\/batch\//),
      'proposed/web/w1',
    ]);
    await at.mergeAs(1, 'bob');
    await at.settle();
    expect(at.revision(api)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    expect(at.revision(web).lifecycle).toBe('Proposed');
  });

  test('the branch is based on the present main branch only if the host requires it', async () => {
    await at.policy({ batch: {}, publishOn: 'merge' });
    await at.proposeAll('api', 'web');
    await at.settle();
    const head = await headOf(1);
    const main = await at.world.push(at.path, { 'other.txt': 'x\n' });
    await at.world.store.repository('apps').sync();
    await at.settle();
    expect(await headOf(1)).toBe(head);
    at.forge.mergeable = 'behind';
    at.restart();
    await at.settle();
    const rebuilt = await headOf(1);
    expect(git(at.path, ['rev-list', '--parents', '-1', rebuilt]).trim()).toBe(`${rebuilt} ${head} ${main}`);
    expect(git(at.path, ['ls-tree', '--name-only', rebuilt]).trim().split('\n')).toContain('other.txt');
    expect(at.forge.checksOf(rebuilt)).toEqual({ 'sluice/ready': 'success' });
  });

  test('a command does not count for a package that came after it was written', async () => {
    await at.policy({ batch: {} }, { requiredGates: [{ conditionType: GATE, approveOnly: true }] });
    const [api = ''] = await at.proposeAll('api');
    await at.settle();
    const [web = ''] = await at.proposeAll('web');
    await at.set(web, 'True');
    at.forge.comment(1, 'bob', '/sluice approve');
    await at.settle(60_000);
    expect(at.forge.pulls).toHaveLength(1);
    expect(lifecycles([api, web])).toEqual(['Proposed', 'Proposed']);
    expect(at.forge.pulls[0]?.body).toContain(`### \`${web}\``);
    const reply = at.forge.commentsOf.get(1)?.find(({ author }) => author === 'sluice')?.body;
    expect(reply).toContain(
      `**Refused**: \`${web}: it is not known that this pull request showed the package as it is now`,
    );
    // The host shows the head that has it.
    await headOf(1);
    await at.settle();
    at.forge.comment(1, 'bob', `/sluice approve ${web}`);
    await at.settle();
    expect(lifecycles([api, web])).toEqual(['Proposed', 'Published']);
  });

  test('a proposal that gets a pull request of its own is not rejected where that cannot be opened at once', async () => {
    await at.policy({ batch: {} });
    const names = await at.proposeAll('api', 'web');
    await at.settle();
    const key = { namespace: 'default', name: 'review' };
    await at.world.client.patch(packagePolicyKind, key, { spec: { review: { batch: null } } });
    await expect.poll(() => at.world.policyFor(at.revision(names[0] ?? '')).review?.batch).toBeUndefined();
    at.forge.before = (method) => {
      if (method === 'open') throw new SluiceError('Unavailable', 'the host is down');
    };
    await at.settle();
    at.forge.before = () => undefined;
    await at.settle();
    expect(lifecycles(names)).toEqual(['Proposed', 'Proposed']);
    expect(at.forge.pulls.map(({ state }) => state)).toEqual(['closed', 'open', 'open']);
    expect(branches()).toBe('');
  });

  test('what the repository has is read before a pull request is closed, since another process may have proposed it', async () => {
    await at.policy({ batch: {} });
    const [api = ''] = await at.proposeAll('api');
    await at.settle();
    const ref = 'refs/heads/proposed/api/w1';
    const oid = git(at.path, ['rev-parse', ref]).trim();
    git(at.path, ['update-ref', '-d', ref]);
    await at.world.store.repository('apps').sync();
    git(at.path, ['update-ref', ref, oid]);
    at.clock.advance(60_000);
    await at.reconcile('apps:batches');
    expect(at.forge.pulls).toMatchObject([{ state: 'open' }]);
    await at.settle();
    expect(lifecycles([api])).toEqual(['Proposed']);
    expect(at.forge.pulls).toMatchObject([{ state: 'open' }]);
  });

  test('a process that has not read a member yet, which another one has added, does not write the pull request without it', async () => {
    await at.policy({ batch: {} });
    await at.proposeAll('api');
    await at.settle();
    at.clock.advance(600_000);
    const back = at.beside();
    const [web = ''] = await at.proposeAll('web');
    await at.settle();
    expect(at.forge.pulls[0]?.body).toContain(`### \`${web}\``);
    back();
    await at.reconcile('apps');
    // Something of the member that it knows has changed.
    await at.set('apps.api.w1', 'True');
    await at.reconcile('apps.api.w1');
    await at.reconcile('apps:batches');
    expect(at.forge.pulls[0]?.body).toContain(`### \`${web}\``);
    await at.settle();
    expect(at.forge.pulls).toMatchObject([{ state: 'open' }]);
    for (const name of ['apps.api.w1', web]) expect(at.forge.pulls[0]?.body).toContain(`### \`${name}\``);
    expect(treeAt(await headOf(1), 'web')).toBe(treeAt('proposed/web/w1', 'web'));
  });

  test('a pull request that another process opened and a user merged meanwhile is not opened a second time', async () => {
    await at.policy({ batch: {}, publishOn: 'merge' });
    const names = await at.proposeAll('api', 'web');
    // This process has read the pull requests, and waits for further proposals.
    for (const name of names) await at.reconcile(name);
    await at.reconcile('apps:batches');
    const back = at.beside();
    await at.settle();
    const commit = await at.mergeAs(1, 'bob');
    back();
    at.clock.advance(60_000);
    await at.reconcile('apps:batches');
    await at.settle();
    expect(creations()).toBe(1);
    for (const name of names)
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', commit, outOfBand: undefined });
    expect(branches()).toBe('');
  });

  test('without spec.review the pull request says so, stays open, and continues when there is one again', async () => {
    await at.policy({ batch: {} });
    const names = await at.proposeAll('api', 'web');
    await at.settle();
    const key = { namespace: 'default', name: 'review' };
    const { spec } = await at.world.client.get(packagePolicyKind, key);
    const set = async (review: object | null) => {
      await at.world.client.patch(packagePolicyKind, key, { spec: { review } });
      await expect
        .poll(() => at.world.policyFor(at.revision(names[0] ?? '')).review === undefined)
        .toBe(review === null);
      await at.settle();
    };
    await set(null);
    expect(at.forge.pulls).toMatchObject([{ state: 'open' }]);
    expect(at.forge.pulls[0]?.body).toContain('No policy has the packages of this pull request reviewed here any more');
    expect(lifecycles(names)).toEqual(['Proposed', 'Proposed']);
    await set({ ...spec.review });
    expect(at.forge.pulls).toMatchObject([{ state: 'open' }]);
    expect(at.forge.pulls[0]?.body).not.toContain('No policy');
    for (const name of names) expect(at.forge.pulls[0]?.body).toContain(`### \`${name}\``);
  });

  test('where the text cannot be written that there is no spec.review any more, left branches are removed all the same', async () => {
    await at.policy({ batch: {} });
    const [name = ''] = await at.proposeAll('api');
    await at.settle();
    const { branch, commit } = (await at.forge.get(1)).head;
    const left = `${branch.slice(0, -1)}x0`;
    git(at.path, ['update-ref', `refs/heads/${left}`, commit]);
    await at.world.store.repository('apps').sync();
    await at.world.client.patch(
      packagePolicyKind,
      { namespace: 'default', name: 'review' },
      { spec: { review: null } },
    );
    await expect.poll(() => at.world.policyFor(at.revision(name)).review).toBeUndefined();
    at.forge.before = (method) => {
      if (method === 'update') throw new SluiceError('Refused', 'the pull request is locked');
    };
    await at.settle(700_000);
    expect(branches()).toBe(branch);
    at.forge.before = () => undefined;
    await at.settle(60_000);
    expect(at.forge.pulls[0]?.body).toContain('No policy has the packages of this pull request reviewed here any more');
  });

  test('the policies are read again before a pull request says that none has its packages reviewed', async () => {
    await at.policy({ batch: {} });
    await at.proposeAll('api');
    await at.settle();
    const repository = at.world.store.repository('apps');
    const policyFor = repository.policyFor.bind(repository);
    let isCurrent = true;
    repository.policyFor = (subject) => (isCurrent ? policyFor(subject) : DEFAULT_POLICY);
    repository.refreshPolicies = async () => {
      isCurrent = true;
    };
    at.restart();
    await at.reconcile('apps:batches');
    isCurrent = false;
    at.clock.advance(2000);
    await at.reconcile('apps:batches');
    expect(at.forge.pulls[0]?.body).not.toContain('No policy');
  });

  test('a branch for which another process has just opened a pull request, or will do so, stays', async () => {
    await at.policy({ batch: {} });
    await at.proposeAll('api');
    await at.settle();
    const { branch, commit } = (await at.forge.get(1)).head;
    const [opened, pushed] = ['0', '1'].map((end) => `${branch.slice(0, -1)}x${end}`);
    for (const one of [opened, pushed]) git(at.path, ['update-ref', `refs/heads/${one}`, commit]);
    await at.world.store.repository('apps').sync();
    await at.forge.open({ head: opened ?? '', base: 'main', title: '', body: '' });
    at.clock.advance(2000);
    await at.reconcile('apps:batches');
    expect(branches().split('\n')).toEqual([branch, opened, pushed].sort());
    at.clock.advance(600_000);
    await at.reconcile('apps:batches');
    expect(branches().split('\n')).toEqual([branch, opened].sort());
    expect(at.forge.pulls).toMatchObject([{ state: 'open' }, { state: 'open' }]);
  });

  test('the checks are set again on request, and at the commits of a merge queue', async () => {
    await at.policy({ batch: {} });
    await at.proposeAll('api', 'web');
    await at.settle();
    const { number, head } = await at.forge.get(1);
    const queued = 'b'.repeat(40);
    const inQueue: { number: number; commit: string }[] = [];
    const waiting = async () => inQueue;
    const treeOf = async (_commit: string, path: string) => treeAt(head.commit, path);
    Object.assign(at.forge, { mergeQueue: { waiting, treeOf } });
    let hint: ReviewRequest | undefined;
    const takeReview = () => {
      const taken = hint;
      hint = undefined;
      return taken;
    };
    at.restart({
      requests: { subscribe: () => () => undefined, addOwn: () => undefined, isAsWritten: () => undefined, takeReview },
    });
    await at.settle();
    const pollWakes = async () => {
      at.woken.length = 0;
      await at.reconcile('apps');
      expect(at.woken).toContain('apps:batches');
    };
    at.forge.checks.clear();
    hint = { reruns: new Set([head.commit]), mergeQueue: false, pulls: new Map() };
    await pollWakes();
    await at.settle();
    expect(at.forge.checksOf(head.commit)).toEqual({ 'sluice/ready': 'success' });
    inQueue.push({ number, commit: queued });
    hint = { reruns: new Set(), mergeQueue: true, pulls: new Map() };
    await pollWakes();
    await at.settle();
    expect(at.forge.checksOf(queued)).toEqual({ 'sluice/ready': 'success' });
  });

  test('where the main branch is protected, a user merges what is approved', async () => {
    await at.policy({ batch: {} });
    const names = await at.proposeAll('api', 'web');
    await at.settle();
    const end = protectMain(at.world.store.repository('apps'));
    at.forge.review(1, 'bob', 'approved', await headOf(1));
    await at.settle();
    expect(lifecycles(names)).toEqual(['Proposed', 'Proposed']);
    expect(await at.world.events(names[0] ?? '')).toContainEqual(
      expect.stringMatching(/^NotMerged: .*other proposals share it, so that a user has to merge it/),
    );
    await at.mergeAs(1, 'dora');
    await at.settle();
    for (const name of names) expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    end();
  });
});
