import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { openPackageRepository } from '../../src/package/store/opening/open-package-repository.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { ANNA } from '../../test/support/fixture.ts';
import { git } from '../../test/support/git/git-cli.ts';
import { serverTrust } from '../../test/support/trust.ts';
import { eachUserPulls, GATE, GATES, KPTFILE, TESTED, type UserPullBench } from '../../test/support/user-pull-bench.ts';

const open = eachUserPulls();
let at: UserPullBench;
beforeEach(() => {
  at = open();
});

const ready = (commit: string) => at.forge.checks.get(commit)?.get('sluice/ready');
const IS_SUCCESS = { state: 'success', title: '1 package checked: no errors, no closed gates' };

/** Registers the branch `dev` of the same Git repository. */
async function registerDev(): Promise<void> {
  const { world, path, clock } = at;
  git(path, ['update-ref', 'refs/heads/dev', 'refs/heads/main']);
  const object = await world.client.create(repositoryKind, {
    metadata: { name: 'dev' },
    spec: { git: { repo: path, branch: 'dev' } },
  });
  const status = { lastFullSyncTime: '2026-01-01T00:00:00Z' };
  const stored = await world.client.updateStatus(repositoryKind, { ...object, status } as never);
  const repository = await openPackageRepository(stored, {
    ...{ trust: serverTrust, dataFolder: join(world.folder, 'data'), clock, policyFor: world.policyFor },
    ...{ dependentsOf: () => [], onChange: () => undefined },
  } as never);
  await world.store.add(repository);
}

async function strictMain(): Promise<void> {
  await at.policy();
  await at.world.client.create(packagePolicyKind, {
    metadata: { name: 'strict' },
    spec: {
      selector: { repositories: ['apps'] },
      requiredGates: [{ conditionType: GATE }],
    },
  });
  const { name } = await at.world.draft('apps/probe/w2');
  await expect
    .poll(() => at.world.policyFor(at.world.store.get(name)).requiredGates.map(({ conditionType }) => conditionType))
    .toContain(GATE);
  await at.world.store.update(name, { action: 'delete' }, ANNA);
}

/** Opens another pull request with the head of the first one. */
async function again(commit: string, base: string, branch = 'feature'): Promise<number> {
  git(at.path, ['update-ref', `refs/heads/${branch}`, commit]);
  for (const repository of at.world.store.repositories()) await repository.refresh();
  const { number } = await at.forge.open({ head: branch, base, title: 'change', body: '' });
  at.forge.change(number, { head: { branch, commit, isSameRepository: true } });
  return number;
}

describe('a head of pull requests to two branches', () => {
  beforeEach(async () => {
    await strictMain();
    await registerDev();
  });

  test.each([
    ['apps', 'dev'],
    ['dev', 'apps'],
  ])('a check that one of them passes does not stand for the other: %s is read first', async (...order) => {
    const commit = await at.pull({ 'web/Kptfile': KPTFILE() });
    await again(commit, 'dev');
    for (const turn of [0, 1]) for (const one of order) await at.poll(30_000 * (1 - turn) + 1000, one);
    expect(ready(commit)).toMatchObject({ state: 'pending', title: `#1 to main: 1 gate closed: ${GATE} of web` });
    expect(ready(commit)?.text).toContain(
      '| `#2 to dev` | success | `1 package checked: no errors, no closed gates` |',
    );
    // A new process never writes another state in between.
    at.restart();
    for (const one of [...order, ...order]) {
      await at.poll(30_000, one);
      expect(ready(commit)?.state).toBe('pending');
    }
    at.forge.change(1, { state: 'closed' });
    for (const one of order) await at.poll(30_000, one);
    expect(ready(commit)).toMatchObject(IS_SUCCESS);
  });

  test.each([
    ['apps', 'dev'],
    ['dev', 'apps'],
  ])('one of them does not pass for that of a fork to the other: %s is read first', async (...order) => {
    const commit = await at.pull({ 'web/Kptfile': KPTFILE() }, { isFork: true });
    const own = await again(commit, 'dev');
    for (const turn of [0, 1]) for (const one of order) await at.poll(30_000 * (1 - turn) + 1000, one);
    const title = `#1 to main from a fork: 1 gate closed: ${GATE} of web`;
    expect(ready(commit)).toMatchObject({ state: 'pending', title });
    expect(ready(commit)?.text).toContain(`| \`#${own} to dev\` | success |`);
    // A new process never writes another state in between.
    at.restart();
    for (const one of [...order, ...order]) {
      await at.poll(30_000, one);
      expect(ready(commit)?.state).toBe('pending');
    }
    // Where the repository itself has one to the branch, those from forks to it do not count.
    at.forge.change(own, { base: { branch: 'main' } });
    for (const one of [...order, ...order]) await at.poll(30_000, one);
    expect(ready(commit)).toMatchObject({ state: 'pending', title: `1 gate closed: ${GATE} of web` });
    at.forge.change(own, { base: { branch: 'dev' } });
    at.forge.change(1, { state: 'closed' });
    for (const one of [...order, ...order]) await at.poll(30_000, one);
    expect(ready(commit)).toMatchObject(IS_SUCCESS);
  });

  test('what is open to another branch is searched before that is read, and only its state counts', async () => {
    const commit = await at.pull({ 'web/Kptfile': KPTFILE(GATES) });
    at.forge.change(1, { base: { branch: 'dev' } });
    await again(commit, 'main', 'other');
    at.forge.change(2, { state: 'closed' });
    await at.poll(30_000, 'dev');
    expect(ready(commit)).toMatchObject({ state: 'pending', title: `1 gate closed: ${GATE} of web` });
  });
});

test('of two pull requests with a head to one branch neither hides what the other lacks', async () => {
  const approvers = ['bob', 'carla'].map((user) => ({ user, subject: user }));
  await at.policy({ publishOn: 'merge', approvers }, { approval: { quorum: { required: 1 } } });
  const commit = await at.pull({ 'web/Kptfile': KPTFILE() });
  await again(commit, 'main', 'copy');
  at.forge.review(2, 'bob', 'approved', commit);
  await at.poll();
  await at.poll();
  expect(ready(commit)?.state).toBe('pending');
  expect(ready(commit)?.title).toMatch(/^#1 to main: /);
  at.forge.review(1, 'bob', 'approved', commit);
  await at.poll();
  expect(ready(commit)?.state).toBe('success');
});

test('a pull request from a fork with the head of another one neither holds it up nor passes for it', async () => {
  await at.policy({}, { requiredGates: [{ conditionType: GATE }] });
  const commit = await at.pull({ 'web/Kptfile': KPTFILE(GATES, TESTED) });
  const fork = await again(commit, 'main', 'copy');
  git(at.path, ['update-ref', '-d', 'refs/heads/copy']);
  git(at.path, ['update-ref', `refs/pull/${fork}/head`, commit]);
  at.forge.change(fork, { head: { branch: 'copy', commit, isSameRepository: false } });
  await at.poll();
  await at.poll();
  expect(ready(commit)).toMatchObject(IS_SUCCESS);
  at.forge.change(1, { state: 'closed' });
  await at.poll();
  expect(ready(commit)).toMatchObject({ state: 'pending', title: `1 gate closed: ${GATE} of web` });
  // Of another one that has ended, nothing is left.
  at.forge.change(1, { state: 'open' });
  await at.poll();
  expect(ready(commit)).toMatchObject(IS_SUCCESS);
  at.forge.change(1, { state: 'closed' });
  await at.poll();
  expect(ready(commit)?.state).toBe('pending');
});

test('a commit that is the head of a proposal has its checks alone, also where no policy has the package checked', async () => {
  await at.policy();
  const { name } = await at.world.draft('apps/web/v1');
  await at.world.store.update(name, { action: 'propose' }, ANNA);
  const { commit } = at.world.store.get(name);
  await again(commit, 'main', 'copy');
  await at.poll();
  expect(ready(commit)).toBeUndefined();
  expect(at.forge.commentsOf.get(1)?.map(({ body }) => body)).toEqual([
    expect.stringContaining(`This commit is the head of the proposal \`proposed/web/v1\` too`),
  ]);
});

test('a proposal that no policy reviews does not keep the check of a pull request with its head as it is', async () => {
  await at.policy({ publishOn: 'merge' }, { packages: ['web'] });
  const commit = await at.pull({ 'web/Kptfile': KPTFILE(), 'db/Kptfile': KPTFILE() });
  await at.poll();
  expect(ready(commit)).toMatchObject(IS_SUCCESS);
  git(at.path, ['update-ref', 'refs/heads/proposed/db/v1', commit]);
  await at.world.store.repository('apps').refresh();
  at.forge.review(1, 'bob', 'changes-requested', commit);
  await at.poll();
  expect(at.world.store.get('apps.db.v1').lifecycle).toBe('Proposed');
  expect(ready(commit)).toMatchObject({ state: 'failure', title: '1 gate closed: sluice.dev/Reviewed of web' });
});

test('each of many pull requests with one head is checked twice at most, and once more when all have ended', async () => {
  await at.policy();
  const commit = await at.pull({ 'web/Kptfile': KPTFILE() });
  for (let number = 2; number <= 30; number += 1) await again(commit, 'main', `copy-${number}`);
  at.forge.calls.length = 0;
  await at.poll();
  expect(at.forge.calls.filter((call) => call === 'get').length).toBeLessThan(65);
  expect(ready(commit)).toMatchObject({ state: 'success', title: expect.stringContaining('#1 to main: 1 package') });
  expect(ready(commit)?.text).toContain('| 10 more | | |');
  for (let number = 2; number <= 30; number += 1) at.forge.change(number, { state: 'closed' });
  await at.poll();
  at.forge.calls.length = 0;
  await at.poll();
  await at.poll();
  expect(ready(commit)).toMatchObject(IS_SUCCESS);
  expect(at.forge.calls.filter((call) => call === 'get').length).toBeLessThan(65);
});

test('what another pull request or a proposal with the head wrote is written over once that has ended', async () => {
  await at.policy({ publishOn: 'merge' }, { requiredGates: [{ conditionType: GATE }] });
  const commit = await at.pull({ 'web/Kptfile': KPTFILE(GATES, TESTED) });
  at.forge.review(1, 'bob', 'changes-requested', commit);
  await at.poll();
  expect(ready(commit)?.state).toBe('failure');
  // The controller of proposals writes for a proposal with this head.
  git(at.path, ['update-ref', 'refs/heads/proposed/web/v1', commit]);
  await at.world.store.repository('apps').refresh();
  at.forge.change(1, {});
  await at.poll();
  at.forge.checks
    .get(commit)
    ?.set('sluice/ready', { name: 'sluice/ready', state: 'success', title: 'of the proposal' });
  git(at.path, ['update-ref', '-d', 'refs/heads/proposed/web/v1']);
  await at.world.store.repository('apps').refresh();
  at.forge.change(1, {});
  await at.poll();
  expect(ready(commit)?.state).toBe('failure');
});
