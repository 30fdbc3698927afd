import { afterEach, beforeEach, expect } from 'vitest';
import {
  type PullRequestOptions,
  pullRequestController,
} from '../../controllers/pull-request/pull-request-controller.ts';
import { MemoryForge } from '../../controllers/pull-request/testing-forge.ts';
import { Informer } from '../../src/controller/informer.ts';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import { type Repository, repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { ANNA, type Fixture, fixture } from './fixture.ts';
import { git, readRef } from './git/git-cli.ts';
import { type MergeStyle, mergeOnHost } from './git/merge-on-host.ts';
import { writeCommit, writeRef } from './git/write-objects.ts';

const CONTEXT = { signal: new AbortController().signal, failures: 0 };
export const BERTA = { ...ANNA, actor: { name: 'berta' } };
export const GATE = 'example.com/Tested';

/** The controller on a real repository, with a host in memory; a new one for each test. */
export class Proposals {
  readonly clock: ManualClock;
  readonly world: Fixture;
  /** Of the repository `apps`. */
  readonly path: string;
  readonly forge = new MemoryForge();
  /** Names of what the controller enqueued, since the last restart. */
  woken: string[] = [];
  /** Proposals that may have ended since. */
  readonly #watched = new Set<string>();
  #controller: ReturnType<typeof pullRequestController> | undefined;
  readonly #repositories: Informer<Repository>;

  private constructor(world: Fixture, path: string, clock: ManualClock) {
    this.clock = clock;
    this.world = world;
    this.path = path;
    this.#repositories = new Informer({ client: world.client, kind: repositoryKind, clock });
  }

  static async open(): Promise<Proposals> {
    const clock = new ManualClock();
    const world = await fixture(clock);
    const made = new Proposals(world, await world.register('apps'), clock);
    made.forge.headOf = (branch) => readRef(made.path, `refs/heads/${branch}`);
    made.#repositories.start();
    await made.#repositories.whenSynced();
    made.restart();
    return made;
  }

  /** A new process, with nothing in memory. */
  restart(more: Partial<PullRequestOptions> = {}): void {
    const { world, clock } = this;
    const { client, store } = world;
    this.woken = [];
    this.#controller = pullRequestController({
      ...{ client, store, clock, mayApprove: undefined, maySetConditions: undefined, renderer: undefined },
      openForge: () => this.forge,
      recorder: world.recorder('controller:pull-request'),
      ...more,
    });
    const enqueue = (key: { readonly name: string }) => void this.woken.push(key.name);
    this.#controller.sources.at(-1)?.start({ enqueue, prioritize: () => undefined } as never);
    // What is there when it starts.
    const addHandler = (handle: (event: unknown) => void) => {
      for (const { namespace, name } of store.list())
        handle({ type: 'add', object: { metadata: { namespace, name } } });
      return () => undefined;
    };
    this.#controller.sources.at(-4)?.start({ enqueue, informer: () => ({ addHandler }) } as never);
    const track = (work: (signal: AbortSignal) => Promise<void>) => void work(CONTEXT.signal);
    for (const source of this.#controller.sources.slice(-3, -1))
      source.start({ enqueue, track, informer: () => this.#repositories } as never);
  }

  /** A new process beside the present one, which the returned function continues with. */
  beside(): () => void {
    const before = this.#controller;
    this.restart();
    return () => {
      this.#controller = before;
    };
  }

  /** Reconciles a revision or repository; a change of the revision wakes the controller once more. */
  async reconcile(name: string, signal = CONTEXT.signal): Promise<unknown> {
    const { store } = this.world;
    const before = store.find(name)?.etag;
    const key = { namespace: 'default', name };
    const result = await this.#controller?.reconcile(key, { ...CONTEXT, signal });
    const isChanged = store.find(name)?.etag !== before && store.find(name)?.lifecycle === 'Proposed';
    return isChanged ? this.#controller?.reconcile(key, CONTEXT) : result;
  }

  /** Reads the repository and reports its main branch, as its controller does. */
  async sync(): Promise<void> {
    const { client, store } = this.world;
    const repository = store.repository('apps');
    await repository.sync();
    const object = await client.get(repositoryKind, { namespace: 'default', name: 'apps' });
    const gitCommitHash = repository.index.mainHead;
    const status = { ...object.status, ...(gitCommitHash === undefined ? {} : { gitCommitHash }) };
    await client.updateStatus(repositoryKind, { ...object, status });
  }

  /** Creates the policy, and waits until it is in force. */
  async policy(review: Record<string, unknown> = {}, spec: Record<string, unknown> = {}): Promise<void> {
    const { world } = this;
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

  /** Changes the policy, so that proposals share a pull request, and waits until that is in force. */
  async reviewTogether(name: string): Promise<void> {
    const { world } = this;
    const policy = { namespace: 'default', name: 'review' };
    await world.client.patch(packagePolicyKind, policy, { spec: { review: { batch: {} } } });
    await expect.poll(() => world.policyFor(this.revision(name)).review?.batch).toBeDefined();
  }

  /** Proposes a new package `app`. Returns the name of the revision. */
  async propose(workspace = 'w1'): Promise<string> {
    const files = { 'a.yaml': 'kind: A\napiVersion: v1\nmetadata: {name: a}\n' };
    const { name } = await this.world.draft(`apps/app/${workspace}`, files);
    await this.world.store.update(name, { action: 'propose' }, BERTA);
    return name;
  }

  /** Proposes new packages with these names. Returns the names of the revisions. */
  async proposeAll(...packages: readonly string[]): Promise<string[]> {
    const names: string[] = [];
    for (const one of packages) {
      const files = { 'a.yaml': `kind: A\napiVersion: v1\nmetadata: {name: ${one}}\n` };
      const { name } = await this.world.draft(`apps/${one}/w1`, files);
      await this.world.store.update(name, { action: 'propose' }, BERTA);
      names.push(name);
    }
    return names;
  }

  /**
   * Reconciles as the work queue does, by the clock of the test, what is proposed and what comes of it within this time. A reconciliation that
   * fails is repeated after a second.
   */
  async settle(milliseconds = 20_000): Promise<void> {
    const { store } = this.world;
    const end = this.clock.now() + milliseconds;
    const due = new Map<string, number>();
    const etags = new Map(store.list().map(({ name, etag }) => [name, etag]));
    for (const { name } of store.list({ lifecycle: 'Proposed' })) due.set(name, 0);
    for (const name of [...this.#watched, 'apps', 'apps:batches', 'apps:rights']) due.set(name, 0);
    for (;;) {
      const [next] = [...due].sort(([a, at], [b, other]) => at - other || (a < b ? -1 : 1));
      if (next === undefined || next[1] > end) break;
      const [name, at] = next;
      if (at > this.clock.now()) this.clock.advance(at - this.clock.now());
      due.delete(name);
      this.woken.length = 0;
      const key = { namespace: 'default', name };
      try {
        const result = await this.#controller?.reconcile(key, CONTEXT);
        if (result?.requeueAfter !== undefined) due.set(name, this.clock.now() + result.requeueAfter);
      } catch (error) {
        if (!isSluiceError(error)) throw error;
        due.set(name, this.clock.now() + 1000);
      }
      const known = store.list();
      const changed = known.filter((one) => etags.get(one.name) !== one.etag).map((one) => one.name);
      const ended = [...etags.keys()].filter((one) => store.find(one) === undefined);
      for (const one of ended) etags.delete(one);
      for (const one of known) etags.set(one.name, one.etag);
      for (const one of [...this.woken, ...changed, ...ended]) due.set(one, this.clock.now());
    }
    this.#watched.clear();
    for (const { name } of store.list({ lifecycle: 'Proposed' })) this.#watched.add(name);
    if (end > this.clock.now()) this.clock.advance(end - this.clock.now());
  }

  /** The host has the heads of the branches of the repository, and merges with merge commits. */
  serveBranches(): void {
    const { path, forge } = this;
    const headOf = (branch: string) => readRef(path, `refs/heads/${branch}`);
    forge.host = {
      head: headOf,
      merge: ({ head, base }) => {
        const parents = [headOf(base.branch) ?? '', head.commit];
        const tree = git(path, ['merge-tree', '--write-tree', ...parents]);
        const commit = writeCommit(path, { tree, parents, message: 'Merge pull request\n' });
        writeRef(path, `refs/heads/${base.branch}`, commit);
        return commit;
      },
    };
  }

  /**
   * The host merges the pull request of a proposal by one of its methods, in the name of a user or of its queue; in another clone, the repository does
   * not have that yet. Returns the commit.
   */
  async mergeHead(
    name: string,
    by: string,
    style: MergeStyle = 'squash',
    number = 1,
    path = this.path,
  ): Promise<string> {
    const { branch } = this.forge.pulls[number - 1]?.head ?? { branch: '' };
    const { commit: tip } = this.revision(name);
    const { commit } = mergeOnHost(path, tip, style, number);
    const head = { branch, commit: tip, isSameRepository: true };
    const { updatedAt: closedAt } = this.forge.change(number, { state: 'merged', head, merged: { commit, by } });
    this.forge.change(number, { closedAt });
    return commit;
  }

  /** Reads what the host merged, and what it reports of a proposal. */
  async readMerge(name: string): Promise<void> {
    await this.world.store.repository('apps').sync();
    await this.reconcile('apps');
    await this.reconcile(name);
  }

  /** A user merges with the button of the host. Returns the commit. */
  async mergeAs(number: number, user: string): Promise<string> {
    const pull = await this.forge.get(number);
    const commit = this.forge.host?.merge(pull, {
      headCommit: pull.head.commit,
      method: 'merge',
      title: '',
      message: '',
    });
    this.forge.change(number, { state: 'merged', merged: { commit: commit ?? '', by: user } });
    await this.world.store.repository('apps').sync();
    return commit ?? '';
  }

  async close(): Promise<void> {
    await this.#repositories.stop();
    await this.world[Symbol.asyncDispose]();
  }

  revision(name: string): PackageRevision {
    return this.world.store.get(name);
  }

  /** A review, and the poll that finds it. */
  async review(...args: Parameters<MemoryForge['review']>): Promise<void> {
    this.forge.review(...args);
    await this.reconcile('apps');
  }

  set(name: string, status: 'True' | 'False'): Promise<PackageRevision> {
    return this.world.store.change(name, { conditions: [{ type: GATE, status }] }, ANNA);
  }
}

/** Opens one for each test of the suite. Returns it. */
export function eachProposals(): () => Proposals {
  let open: Proposals | undefined;
  beforeEach(async () => {
    open = await Proposals.open();
  });
  afterEach(() => open?.close());
  return () => {
    if (open === undefined) throw new Error('there is none before a test');
    return open;
  };
}
