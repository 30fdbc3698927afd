import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { openPackageRepository } from '../../src/package/store/opening/open-package-repository.ts';
import { reviewsOf } from '../../src/package/store/policies/repository-reviews.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { ANNA, type Fixture, fixture } from '../../test/support/fixture.ts';
import { git } from '../../test/support/git/git-cli.ts';
import { serverTrust } from '../../test/support/trust.ts';
import { GATE, GATES, KPTFILE, TESTED } from '../../test/support/user-pull-bench.ts';
import { MemoryForge } from '../pull-request/testing-forge.ts';
import { SyncRequests } from '../repository/sync-requests.ts';
import { type UserPullRequestOptions, userPullRequestController } from './user-pull-request-controller.ts';

const CONTEXT = { signal: new AbortController().signal, failures: 0 };
const POLL_MS = 30_000;

describe('folders of one branch that are registered by themselves', () => {
  let clock: ManualClock;
  let world: Fixture;
  let path: string;
  let forge: MemoryForge;
  let controller: ReturnType<typeof userPullRequestController>;
  let woken: string[];
  /** When `run` looks at which of them again. */
  const due = new Map<string, number>();
  beforeEach(async () => {
    clock = new ManualClock();
    world = await fixture(clock);
    path = await world.bare('mono');
    forge = new MemoryForge();
    await world.client.create(packagePolicyKind, {
      metadata: { name: 'review' },
      spec: {
        approval: {},
        review: {
          forge: { provider: 'gitea', api: 'https://git.example.com/api/v1', secretRef: { name: 'forge' } },
          approvers: [{ user: 'bob', subject: 'bob@example.com' }],
        },
      },
    } as never);
    start();
  });
  afterEach(() => world[Symbol.asyncDispose]());

  /** A new process, with nothing in memory. */
  function start(more: Partial<UserPullRequestOptions> = {}): void {
    const { client, store } = world;
    woken = [];
    due.clear();
    controller = userPullRequestController({
      ...{ client, store, clock, mayCreate: undefined, mayApprove: undefined },
      ...{ renderer: undefined, restrictedRenderer: undefined },
      openForge: () => forge,
      reviewsOf: async (repository) => reviewsOf(repository, (await client.list(packagePolicyKind, {})).items),
      recorder: world.recorder('controller:pull-request'),
      ...more,
    });
    controller.sources.at(-1)?.start({ enqueue: ({ name }: { name: string }) => void woken.push(name) } as never);
  }

  async function declare(directory: string): Promise<void> {
    const status = { lastFullSyncTime: '2026-01-01T00:00:00Z' };
    const object = await world.client.create(repositoryKind, {
      metadata: { name: directory },
      spec: { git: { repo: path, directory } },
    });
    await world.client.updateStatus(repositoryKind, { ...object, status } as never);
  }

  async function open(directory: string): Promise<void> {
    const object = await world.client.get(repositoryKind, { namespace: 'default', name: directory });
    const repository = await openPackageRepository(object, {
      ...{ trust: serverTrust, dataFolder: join(world.folder, 'data'), clock, policyFor: world.policyFor },
      ...{ dependentsOf: () => [], onChange: () => undefined },
    } as never);
    await world.store.add(repository);
    const subject = { key: { repository: directory, package: 'web', workspace: 'x' }, namespace: 'default' };
    const probe = { ...subject, name: `${directory}.web.x`, path: `${directory}/web` } as never;
    await expect.poll(() => world.policyFor(probe).review).toBeDefined();
  }

  async function register(...directories: readonly string[]): Promise<void> {
    for (const directory of directories) await declare(directory);
    for (const directory of directories) await open(directory);
  }

  /** Opens a pull request with these files. Returns the commit of its head. */
  async function pull(files: Readonly<Record<string, string>>, branch = 'feature'): Promise<string> {
    const commit = await world.push(path, files, branch, 'refs/heads/main');
    for (const name of ['left', 'right'])
      if (world.store.findRepository(`default/${name}`) !== undefined) await world.store.repository(name).refresh();
    const { number } = await forge.open({ head: branch, base: 'main', title: 'change', body: '' });
    forge.change(number, { head: { branch, commit, isSameRepository: true } });
    return commit;
  }

  /** Polls for these, and does what comes of it. */
  async function poll(...names: readonly string[]): Promise<void> {
    clock.advance(POLL_MS);
    woken.push(...names);
    for (let name = woken.shift(); name !== undefined; name = woken.shift())
      await controller.reconcile({ namespace: 'default', name }, CONTEXT);
  }

  /** Does what is due for so long, as the work queue does, beginning with these. */
  async function run(milliseconds: number, ...names: readonly string[]): Promise<void> {
    const end = clock.now() + milliseconds;
    const add = (name: string, at: number) => due.set(name, Math.min(at, due.get(name) ?? at));
    for (woken.push(...names); ; ) {
      for (const name of woken.splice(0)) add(name, clock.now());
      const [next, at = end] = [...due].sort(([, a], [, b]) => a - b)[0] ?? [];
      if (next === undefined || at > end) break;
      due.delete(next);
      clock.advance(Math.max(0, at - clock.now()));
      const result = await controller.reconcile({ namespace: 'default', name: next }, CONTEXT);
      if (result?.requeueAfter !== undefined) add(next, clock.now() + Math.max(1, result.requeueAfter));
    }
  }

  const ready = (commit: string) => forge.checks.get(commit)?.get('sluice/ready');
  const topics = () => (forge.commentsOf.get(1) ?? []).map(({ body }) => /topic=(\S+)/.exec(body)?.[1]);

  test.each([
    ['left', 'right'],
    ['right', 'left'],
  ])('a closed gate in one is not hidden by the other: %s is read first', async (...order) => {
    await register('left', 'right');
    const commit = await pull({ 'left/web/Kptfile': KPTFILE(GATES) });
    const other = await pull({ 'right/web/Kptfile': KPTFILE(GATES) }, 'other');
    await poll(...order);
    expect(ready(commit)).toMatchObject({ state: 'pending', title: `1 gate closed: ${GATE} of left/web` });
    expect(ready(other)).toMatchObject({ state: 'pending', title: `1 gate closed: ${GATE} of right/web` });
    start();
    await poll(...order);
    expect(ready(commit)?.state).toBe('pending');
    expect(git(path, ['rev-parse', 'feature'])).toBe(commit);
    // The comments of Sluice are changes too.
    for (let turn = 0; turn < 2; turn += 1) await poll(...order);
    forge.calls.length = 0;
    await poll(...order);
    expect([...new Set(forge.calls)]).toEqual(['listUpdated']);
  });

  test('the check is as the worst of all packages, and has a line for each Repository', async () => {
    await register('left', 'right');
    const commit = await pull({ 'left/web/Kptfile': KPTFILE(), 'right/web/Kptfile': KPTFILE(GATES) });
    await poll('left', 'right');
    expect(ready(commit)).toMatchObject({ state: 'pending', title: `1 gate closed: ${GATE} of right/web` });
    expect(ready(commit)?.text).toContain('| `default/left` | success |');
    expect(ready(commit)?.text).toContain('| `default/right` | **pending** |');
    expect(topics()).toEqual(['packages']);
    expect(forge.commentsOf.get(1)?.[0]?.body).toMatch(
      /`left\/web` of `default\/left`[\s\S]*`right\/web` of `default\/right`/,
    );
    const next = await pull({ 'left/web/Kptfile': KPTFILE(), 'right/web/Kptfile': KPTFILE(GATES, TESTED) }, 'next');
    await poll('left', 'right');
    expect(ready(next)).toMatchObject({ state: 'success', title: '2 packages checked: no errors, no closed gates' });
  });

  test('it waits for one that is not open yet, and for no other pull request', async () => {
    await declare('left');
    await declare('right');
    await open('left');
    const commit = await pull({ 'right/web/Kptfile': KPTFILE() });
    const other = await pull({ 'left/web/Kptfile': KPTFILE() }, 'other');
    await poll('left', 'right');
    expect(ready(commit)).toMatchObject({
      state: 'pending',
      title: 'The packages in right wait until the Repository default/right is read',
    });
    expect(ready(other)?.state).toBe('success');
    await open('right');
    await poll('right');
    expect(ready(commit)?.state).toBe('success');
  });

  test('while one is not open, its pull requests cost no requests; when it arrives, all are checked', async () => {
    await declare('left');
    await declare('right');
    await open('left');
    const commit = await pull({ 'right/web/Kptfile': KPTFILE() });
    const other = await pull({ 'right/app/Kptfile': KPTFILE() }, 'other');
    await run(120_000, 'left', 'right');
    expect([ready(commit)?.state, ready(other)?.state]).toEqual(['pending', 'pending']);
    forge.calls.length = 0;
    await run(600_000);
    expect([...new Set(forge.calls)]).toEqual(['listUpdated']);
    await open('right');
    await run(1000);
    expect([ready(commit)?.state, ready(other)?.state]).toEqual(['success', 'success']);
  });

  test('while one has not the head, it is looked for at growing intervals', async () => {
    await register('left', 'right');
    const right = world.store.repository('right');
    const resolve = vi.spyOn(right.git, 'resolveRef').mockResolvedValue(undefined);
    const fetchPull = vi.spyOn(right.untracked, 'fetchPull').mockResolvedValue(undefined);
    const commit = await pull({ 'right/web/Kptfile': KPTFILE() });
    await run(120_000, 'left', 'right');
    expect(ready(commit)?.state).toBe('pending');
    forge.calls.length = 0;
    await run(3_600_000);
    // The intervals double, up to ten minutes.
    expect(forge.calls.filter((call) => call === 'get').length).toBeLessThanOrEqual(10);
    resolve.mockRestore();
    fetchPull.mockRestore();
    await run(600_000);
    expect(ready(commit)?.state).toBe('success');
  });

  test('one that another one takes the checks over from asks for no rights any more', async () => {
    const approval = { quorum: { required: 2 } };
    const key = { namespace: 'default', name: 'review' };
    await world.client.patch(packagePolicyKind, key, { spec: { approval, review: { publishOn: 'merge' } } });
    let asked = 0;
    const mayApprove = async () => {
      asked += 1;
      return true;
    };
    start({ mayApprove });
    await declare('right');
    clock.advance(1000);
    await register('left');
    const commit = await pull({ 'left/web/Kptfile': KPTFILE() });
    forge.review(1, 'bob', 'approved', commit);
    await poll('left');
    expect(asked).toBeGreaterThan(0);
    await open('right');
    await poll('right', 'left');
    clock.advance(360_000);
    expect(await controller.reconcile({ namespace: 'default', name: 'left:rights' }, CONTEXT)).toBeUndefined();
    asked = 0;
    await controller.reconcile({ namespace: 'default', name: 'right:rights' }, CONTEXT);
    expect(asked).toBeGreaterThan(0);
  });

  test('one that is registered later, or deleted, changes the checks of open pull requests', async () => {
    await register('right');
    const commit = await pull({ 'left/web/Kptfile': KPTFILE(GATES), 'right/web/Kptfile': KPTFILE() });
    await poll('right');
    expect(ready(commit)).toMatchObject({ state: 'success', title: '1 package checked: no errors, no closed gates' });
    clock.advance(1000);
    await register('left');
    await poll('left');
    expect(ready(commit)).toMatchObject({ state: 'pending', title: `1 gate closed: ${GATE} of left/web` });
    // The oldest one has written for both.
    await world.client.delete(repositoryKind, { namespace: 'default', name: 'right' });
    await world.store.remove('default/right');
    await poll('right');
    expect(ready(commit)).toMatchObject({ state: 'pending', title: `1 gate closed: ${GATE} of left/web` });
    expect(ready(commit)?.text ?? '').not.toContain('default/right');
  });

  test('the pull request of a proposal in one of them is left to its own controller', async () => {
    await register('left', 'right');
    const { name } = await world.draft('right/web/v1');
    await world.store.update(name, { action: 'propose' }, ANNA);
    const { commit, ref } = world.store.get(name);
    const branch = ref.replace('refs/heads/', '');
    const { number } = await forge.open({ head: branch, base: 'main', title: 'change', body: '' });
    forge.change(number, { head: { branch, commit, isSameRepository: true } });
    await poll('left', 'right');
    expect(ready(commit)).toBeUndefined();
    expect(topics()).toEqual([]);
  });

  test('the pull request of a proposal that a user has pushed is left to its own controller, also before it is fetched', async () => {
    await register('left', 'right');
    const branch = 'proposed/right/web/v1';
    const commit = await world.push(path, { 'right/web/Kptfile': KPTFILE() }, branch, 'refs/heads/main');
    const { number } = await forge.open({ head: branch, base: 'main', title: 'change', body: '' });
    forge.change(number, { head: { branch, commit, isSameRepository: true } });
    await poll('left', 'right');
    expect(world.store.list({ lifecycle: 'Proposed' }).map(({ name }) => name)).toEqual(['right.web.v1']);
    expect(ready(commit)).toBeUndefined();
    expect(topics()).toEqual([]);
  });

  test('a command in a comment waits for one that is not open', async () => {
    await declare('left');
    await declare('right');
    await open('left');
    await pull({ 'left/web/Kptfile': KPTFILE(), 'right/web/Kptfile': KPTFILE() });
    forge.comment(1, 'bob', '/sluice adopt');
    await poll('left', 'right');
    await poll('left', 'right');
    const replies = () =>
      (forge.commentsOf.get(1) ?? []).flatMap(({ body }) => (body.includes('topic=adopt') ? body : []));
    expect(replies()).toEqual([
      expect.stringMatching(
        /`bob` is carried out once all packages are read:[\s\S]*`.*the Repository default\/right is read`/,
      ),
    ]);
    expect(world.store.list({ lifecycle: 'Draft' })).toEqual([]);
    await open('right');
    await poll('right', 'left');
    const drafts = world.store.list({ lifecycle: 'Draft' }).map(({ name }) => name);
    expect(drafts.sort()).toEqual(['left.web.pr-1', 'right.web.pr-1']);
    expect(replies()).toEqual([expect.stringContaining('The packages are adopted as drafts.')]);
  });

  test.each(['left', 'right'])('a request that was edited is known as that by the webhook of %s', async (name) => {
    const requests = new SyncRequests(clock);
    forge.reportsEdits = false;
    start({ requests });
    await register('left', 'right');
    await pull({ 'left/web/Kptfile': KPTFILE() });
    const id = forge.comment(1, 'bob', '/sluice adopt');
    requests.addWritten({ namespace: 'default', name }, { id, author: 'bob', body: 'please review' });
    await run(120_000, 'left', 'right');
    expect(topics()).toContain('adopt');
    expect(world.store.list({ lifecycle: 'Draft' })).toEqual([]);
  });

  test('a command in a comment is carried out for all of them, and gets one reply', async () => {
    await register('left', 'right');
    await pull({ 'left/web/Kptfile': KPTFILE(), 'right/web/Kptfile': KPTFILE() });
    forge.comment(1, 'bob', '/sluice adopt');
    await poll('left', 'right');
    await poll('right', 'left');
    expect(topics().filter((topic) => topic === 'adopt')).toHaveLength(1);
    const drafts = world.store.list({ lifecycle: 'Draft' }).map(({ name }) => name);
    expect(drafts.sort()).toEqual(['left.web.pr-1', 'right.web.pr-1']);
  });

  test('the lists of an idle hour do not grow with their number', async () => {
    await register('left', 'right');
    await pull({ 'left/web/Kptfile': KPTFILE() });
    await run(300_000, 'left', 'right');
    forge.calls.length = 0;
    await run(3_600_000);
    expect(forge.calls.filter((call) => call === 'listUpdated').length).toBeLessThan(130);
  });
});
