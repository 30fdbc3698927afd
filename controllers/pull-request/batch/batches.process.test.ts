import { beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import type { ExplainedRevision } from '../../../src/package/api/explain/explainer.ts';
import { packagePolicyKind } from '../../../src/resource/kinds/sluice/package-policy.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import { eachProposals, GATE, type Proposals } from '../../../test/support/proposal-bench.ts';
import { protectMain } from '../../../test/support/protected-main.ts';
import type { ReviewRequest } from '../../repository/sync-requests.ts';
import { pullRequestExplainer } from '../explain-pull-request.ts';
import { readingsOf } from './testing-batches.ts';

describe('a pull request of several proposals', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(() => {
    at = open();
    at.serveBranches();
  });

  const { branches, creations, headOf, lifecycles, treeAt } = readingsOf(() => at);

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

  test('the checks are set again on request, and at the commits of a merge queue', async () => {
    await at.policy({ batch: {} });
    await at.proposeAll('api', 'web');
    await at.settle();
    const { number, head } = await at.forge.get(1);
    const queued = 'b'.repeat(40);
    const inQueue: { number: number; commit: string }[] = [];
    const waiting = async () => ({ merges: inQueue, isComplete: true });
    const treeOf = async (_commit: string, path: string) => treeAt(head.commit, path);
    Object.assign(at.forge, { mergeQueue: { waiting, treeOf } });
    let hint: ReviewRequest | undefined;
    const takeReview = () => {
      const taken = hint;
      hint = undefined;
      return taken;
    };
    at.restart({
      requests: {
        subscribe: () => () => undefined,
        onCheck: () => () => undefined,
        addOwn: () => undefined,
        isAsWritten: () => undefined,
        takeReview,
      },
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
