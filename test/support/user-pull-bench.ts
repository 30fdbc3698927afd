import { afterEach, beforeEach, expect } from 'vitest';
import { MemoryForge } from '../../controllers/pull-request/testing-forge.ts';
import {
  type UserPullRequestOptions,
  userPullRequestController,
} from '../../controllers/user-pull-request/user-pull-request-controller.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { builtIns } from '../../src/function/built-in/index.ts';
import { Catalog } from '../../src/function/catalog/catalog.ts';
import { externalFunctions } from '../../src/function/external/external-functions.ts';
import { FunctionRenderer } from '../../src/function/renderer/function-renderer.ts';
import { workerPipelineRunner } from '../../src/function/worker/worker-pipeline-runner.ts';
import { initRepository } from '../../src/git/open/open-repository.ts';
import type { Renderer } from '../../src/package/plan/ports/renderer.ts';
import { reviewsOf } from '../../src/package/store/policies/repository-reviews.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { ANNA, type Fixture, fixture } from './fixture.ts';
import { git } from './git/git-cli.ts';
import { type MergeStyle, mergeOnHost } from './git/merge-on-host.ts';
import { commitFiles } from './scratch-repository.ts';

/** At most between two polls without webhooks. */
const POLL_MS = 30_000;
/** At most between two looks at the rights of a repository. */
const RIGHTS_MS = 360_000;
const CONTEXT = { signal: new AbortController().signal, failures: 0 };
export const GATE = 'example.com/Tested';
export const KPTFILE = (more = '', status = '') =>
  `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\n${more}${status}`;
export const GATES = `info:\n  readinessGates:\n    - conditionType: ${GATE}\n`;
export const TESTED = `status:\n  conditions:\n    - type: ${GATE}\n      status: "True"\n`;
export const LABELS = 'pipeline:\n  mutators:\n    - image: set-labels:v0.2\n      configMap:\n        team: shop\n';
export const MAP = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\n';

/** The controller on a real repository, with a host in memory and the built-in functions; a new one for each test. */
export class UserPullBench {
  readonly clock: ManualClock;
  readonly world: Fixture;
  /** Of the repository `apps`. */
  readonly path: string;
  readonly forge = new MemoryForge();
  readonly renderers: Renderer;
  readonly #runner: ReturnType<typeof workerPipelineRunner>;
  readonly #woken: string[] = [];
  #controller: ReturnType<typeof userPullRequestController> | undefined;
  /** Until the next poll that the last one has requested, in milliseconds. */
  nextPollMs: number | undefined;

  private constructor(world: Fixture, path: string, clock: ManualClock) {
    this.clock = clock;
    this.world = world;
    this.path = path;
    this.#runner = workerPipelineRunner({
      external: externalFunctions({ programs: 'not here', containers: 'not here' }),
      concurrency: 1,
    });
    this.renderers = new FunctionRenderer({ runner: this.#runner, catalog: new Catalog(builtIns), rules: () => [] });
  }

  static async open(): Promise<UserPullBench> {
    const clock = new ManualClock();
    const world = await fixture(clock);
    const made = new UserPullBench(world, await world.register('apps'), clock);
    made.restart();
    return made;
  }

  async close(): Promise<void> {
    await this.#runner.close();
    await this.world[Symbol.asyncDispose]();
  }

  /** A new process, with nothing in memory. */
  restart(more: Partial<UserPullRequestOptions> = {}): void {
    const { world, clock, renderers } = this;
    const { client, store } = world;
    this.#woken.length = 0;
    this.#controller = userPullRequestController({
      ...{
        client,
        store,
        clock,
        mayCreate: undefined,
        mayApprove: undefined,
        renderer: renderers,
        restrictedRenderer: renderers,
      },
      openForge: () => this.forge,
      reviewsOf: async (repository) => reviewsOf(repository, (await client.list(packagePolicyKind, {})).items),
      recorder: world.recorder('controller:pull-request'),
      ...more,
    });
    const enqueue = ({ name }: { readonly name: string }) => void this.#woken.push(name);
    this.#controller.sources.at(-1)?.start({ enqueue } as never);
  }

  /** A new process beside the present one, which the returned function continues with. */
  beside(): () => void {
    const before = this.#controller;
    this.restart();
    return () => {
      this.#controller = before;
    };
  }

  /** Reads the pull requests after so many milliseconds, by default when it is time, and checks those that changed. */
  poll(milliseconds = POLL_MS, repository = 'apps'): Promise<unknown> {
    return this.reconcile(repository, milliseconds);
  }

  /** Looks at the rights that checks depend on, once that is due, and checks those that changed. */
  lookAtRights(): Promise<unknown> {
    return this.reconcile('apps:rights', RIGHTS_MS);
  }

  private async reconcile(first: string, milliseconds: number): Promise<unknown> {
    this.clock.advance(milliseconds);
    const reconcile = (name: string) => this.#controller?.reconcile({ namespace: 'default', name }, CONTEXT);
    let result = await reconcile(first);
    this.nextPollMs = result?.requeueAfter;
    while (this.#woken.length > 0) result = await reconcile(this.#woken.shift() ?? '');
    return result;
  }

  /** Checks one again, as when the time of its last result is over. */
  async check(number: number): Promise<unknown> {
    return this.#controller?.reconcile({ namespace: 'default', name: `apps.${number}` }, CONTEXT);
  }

  /** Creates a policy, for all packages or the listed ones, and waits until it is in force. */
  async policy(
    review: Record<string, unknown> = {},
    {
      name: policy = 'review',
      packages,
      ...spec
    }: { name?: string; packages?: string[]; [field: string]: unknown } = {},
  ): Promise<void> {
    const host = { provider: 'gitea', api: 'https://git.example.com/api/v1', secretRef: { name: 'forge' } } as const;
    await this.world.client.create(packagePolicyKind, {
      metadata: { name: policy },
      spec: {
        ...(packages === undefined ? {} : { selector: { repositories: ['apps'], packages } }),
        ...spec,
        review: { forge: host, approvers: [{ user: 'bob', subject: 'bob@example.com' }], ...review },
      },
    });
    const { name } = await this.world.draft(`apps/${packages?.[0] ?? 'probe'}/w1`);
    await expect.poll(() => this.world.policyFor(this.world.store.get(name)).review?.policy).toBe(policy);
    await this.world.store.update(name, { action: 'delete' }, ANNA);
  }

  /** Changes the policy, and waits until that is in force. */
  async setPublishOn(publishOn: 'approval' | 'review' | 'merge'): Promise<void> {
    const key = { namespace: 'default', name: 'review' };
    await this.world.client.patch(packagePolicyKind, key, { spec: { review: { publishOn } } });
    const { name } = await this.world.draft('apps/probe/w1');
    await expect.poll(() => this.world.policyFor(this.world.store.get(name)).review?.publishOn).toBe(publishOn);
    await this.world.store.update(name, { action: 'delete' }, ANNA);
  }

  /** Lets proposals share pull requests by the policy, or not any more, and waits until that is in force. */
  async shareProposals(batch: object | null = {}): Promise<void> {
    const key = { namespace: 'default', name: 'review' };
    await this.world.client.patch(packagePolicyKind, key, { spec: { review: { batch } } });
    const { name } = await this.world.draft('apps/probe/w1');
    const isShared = () => this.world.policyFor(this.world.store.get(name)).review?.batch !== undefined;
    await expect.poll(isShared).toBe(batch !== null);
    await this.world.store.update(name, { action: 'delete' }, ANNA);
  }

  /** Pushes a branch, of a fork if it is none of the repository, and opens its pull request. Returns the commit. */
  async pull(
    files: Readonly<Record<string, string | null>>,
    {
      branch = 'feature',
      isFork = false,
      links = {},
      onTop = false,
    }: { branch?: string; isFork?: boolean; onTop?: boolean; links?: Readonly<Record<string, string>> } = {},
  ): Promise<string> {
    const git = await initRepository(this.path);
    const ref = isFork ? `refs/pull/${this.forge.pulls.length + 1}/head` : `refs/heads/${branch}`;
    const main = (await git.resolveRef('refs/heads/main')) ?? '';
    const commit = await commitFiles(git, files, this.clock.now(), {
      branch: 'tmp-feature',
      from: onTop ? ref : 'refs/heads/main',
      links,
    });
    const old = await git.resolveRef('refs/heads/tmp-feature');
    const before = await git.resolveRef(ref);
    await git.transaction([
      ...(old === undefined ? [] : [{ type: 'delete', ref: 'refs/heads/tmp-feature', old } as const]),
      before === undefined ? { type: 'create', ref, new: commit } : { type: 'update', ref, old: before, new: commit },
    ]);
    await git.close();
    expect(main).not.toBe(commit);
    await this.world.store.repository('apps').refresh();
    const head = { branch, commit, isSameRepository: !isFork };
    const known = this.forge.pulls.find((one) => one.head.branch === branch && one.state === 'open');
    const { number } = known ?? (await this.forge.open({ head: branch, base: 'main', title: 'change', body: '' }));
    this.forge.change(number, { head });
    return commit;
  }

  /** Merges a pull request as the button of the host does, and removes its branch. Returns the commit of the merge. */
  async merge(number: number, by: string, style: MergeStyle = 'merge'): Promise<string> {
    const pull = this.forge.pulls[number - 1];
    const { base, commit } = mergeOnHost(this.path, pull?.head.commit ?? '', style, number);
    if (pull?.head.isSameRepository === true) git(this.path, ['update-ref', '-d', `refs/heads/${pull.head.branch}`]);
    const { updatedAt: closedAt } = this.forge.change(number, { state: 'merged', merged: { commit, by, base } });
    this.forge.change(number, { closedAt });
    await this.world.store.repository('apps').refresh();
    return commit;
  }

  /** The checks of a commit, by name. */
  titles(commit: string): Record<string, string> {
    return Object.fromEntries(
      [...(this.forge.checks.get(commit) ?? [])].map(([name, { state, title }]) => [name, `${state}: ${title}`]),
    );
  }

  comment(number: number, topic = 'packages'): string | undefined {
    const start = `<!-- sluice:comment topic=${topic} -->`;
    return this.forge.commentsOf.get(number)?.find(({ body }) => body.startsWith(start))?.body;
  }

  async delete(name: string): Promise<void> {
    for (const action of ['propose-deletion', 'delete'] as const) await this.world.store.update(name, { action }, ANNA);
  }

  /** The branches of drafts, or other refs. */
  async refs(prefix = 'refs/heads/drafts/'): Promise<string[]> {
    const git = await initRepository(this.path);
    const names = (await git.listRefs([prefix])).map(({ name }) => name);
    await git.close();
    return names;
  }
}

/** Opens one for each test of the suite. Returns it. */
export function eachUserPulls(): () => UserPullBench {
  let open: UserPullBench | undefined;
  beforeEach(async () => {
    open = await UserPullBench.open();
  });
  afterEach(() => open?.close());
  return () => {
    if (open === undefined) throw new Error('there is none before a test');
    return open;
  };
}
