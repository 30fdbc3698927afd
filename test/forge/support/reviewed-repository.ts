import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { pullRequestController } from '../../../controllers/pull-request/pull-request-controller.ts';
import { SyncRequests } from '../../../controllers/repository/sync-requests.ts';
import { userPullRequestController } from '../../../controllers/user-pull-request/user-pull-request-controller.ts';
import { openForges } from '../../../src/app/controllers/forges.ts';
import { systemClock } from '../../../src/foundation/time/clock.ts';
import { DEFAULT_NETWORK } from '../../../src/git/network/git-network.ts';
import { stateExplainer } from '../../../src/package/api/explain/explain-state.ts';
import type { Reason } from '../../../src/package/model/revision/explanation.ts';
import type { PackageRevision } from '../../../src/package/model/revision/package-revision.ts';
import { reviewsOf } from '../../../src/package/store/policies/repository-reviews.ts';
import { secretKind } from '../../../src/resource/kinds/core/secret.ts';
import { packagePolicyKind } from '../../../src/resource/kinds/sluice/package-policy.ts';
import { type Fixture, fixture } from '../../support/fixture.ts';
import { type Gitea, type Login, OWNER } from './gitea.ts';

const run = promisify(execFile);
const SCOPES = ['write:repository', 'write:issue', 'read:user', 'read:organization'];
const HANDLED_WITHIN = { timeout: 90_000, interval: 250 };
const PROPOSER = { actor: { name: 'berta' }, face: 'cli' } as const;

/** A pull request as the API of Gitea returns it. */
export interface Pull {
  readonly number: number;
  readonly title: string;
  readonly body: string;
  readonly state: 'open' | 'closed';
  readonly merged: boolean;
  readonly merge_commit_sha: string | null;
  readonly head: { readonly ref: string; readonly sha: string };
}

/** A repository of a real Gitea whose proposals are reviewed there: the controller of pull requests runs on it. */
export class ReviewedRepository implements AsyncDisposable {
  readonly world: Fixture;
  readonly #requests: SyncRequests;
  readonly #gitea: Gitea;
  readonly #logins: ReadonlyMap<string, Login>;
  /** Of the repository on the host. */
  readonly #name: string;

  private constructor(
    world: Fixture,
    requests: SyncRequests,
    gitea: Gitea,
    logins: ReadonlyMap<string, Login>,
    name: string,
  ) {
    this.world = world;
    this.#requests = requests;
    this.#gitea = gitea;
    this.#logins = logins;
    this.#name = name;
  }

  /** Creates it as `apps` of Sluice, with the policy and with users of the host who may write and whom the policy maps to `<user>@example.com`. */
  static async open(
    gitea: Gitea,
    name: string,
    users: readonly string[],
    review: Record<string, unknown>,
    spec: Record<string, unknown> = {},
    /** The controller of pull requests that users open runs as well. */
    hasUserPulls = false,
  ): Promise<ReviewedRepository> {
    const repo = await gitea.createRepository(name);
    const sluice = `${name}-sluice`;
    const logins = new Map<string, Login>();
    for (const user of [sluice, ...users]) {
      logins.set(user, await gitea.createUser(user));
      await gitea.addWriter(user, name);
    }
    const token = await gitea.createToken(sluice, name, SCOPES);
    const world = await fixture();
    const { client, store, clock } = world;
    const requests = new SyncRequests(clock);
    try {
      await client.create(secretKind, { metadata: { name: 'forge' }, stringData: { token } });
      await world.register('apps', { repo, credentials: { basic: { username: sluice, password: token } } });
      const forge = { provider: 'gitea', api: `${gitea.url}/api/v1`, secretRef: { name: 'forge' } } as const;
      const approvers = users.map((user) => ({ user, subject: `${user}@example.com` }));
      const metadata = { name: 'review' };
      await client.create(packagePolicyKind, { metadata, spec: { ...spec, review: { forge, approvers, ...review } } });
      const options = {
        ...{ client, store, clock, mayApprove: undefined, renderer: undefined, requests },
        openForge: openForges({ client, network: DEFAULT_NETWORK, clock: systemClock }).forReview,
        recorder: world.recorder('controller:pull-request'),
      };
      world.manager.addController(pullRequestController({ ...options, maySetConditions: undefined }));
      if (hasUserPulls)
        world.manager.addController(
          userPullRequestController({
            ...{ ...options, mayCreate: undefined, restrictedRenderer: undefined },
            reviewsOf: async (repository) => reviewsOf(repository, (await client.list(packagePolicyKind, {})).items),
          }),
        );
      await world.manager.start();
    } catch (error) {
      await world[Symbol.asyncDispose]();
      throw error;
    }
    return new ReviewedRepository(world, requests, gitea, logins, name);
  }

  /** The repository in the API. */
  get path(): string {
    return `/repos/${OWNER.username}/${this.#name}`;
  }

  /** The bare repository of the host. */
  get gitDir(): string {
    return this.#gitea.pathOf(this.#name);
  }

  /** Proposes new packages. Returns the names of the revisions. */
  async propose(...packages: readonly string[]): Promise<string[]> {
    const { world } = this;
    const names: string[] = [];
    for (const one of packages) {
      const files = { 'a.yaml': `kind: A\napiVersion: v1\nmetadata: {name: ${one}}\n` };
      names.push((await world.draft(`apps/${one}/w1`, files)).name);
    }
    for (const name of names) await world.store.update(name, { action: 'propose' }, PROPOSER);
    return names;
  }

  /** Revisions as the host has them now. */
  async revisions(names: readonly string[]): Promise<PackageRevision[]> {
    await this.world.store.repository('apps').sync();
    return names.map((name) => this.world.store.get(name));
  }

  /**
   * Waits until the host has done what follows from so many removals of a branch: it closes each pull request of the branch that is open when it
   * gets to that, which can be after it was opened again.
   */
  async finishRemoval(branch: string, times = 1): Promise<void> {
    const removals = async () =>
      ((await this.api('GET', '/activities/feeds?limit=50')) as { op_type: string; ref_name: string }[]).filter(
        ({ op_type: what, ref_name: ref }) => what === 'delete_branch' && ref === `refs/heads/${branch}`,
      );
    await expect.poll(removals, HANDLED_WITHIN).toHaveLength(times);
    // The feed has it before the pull requests are closed.
    await this.#gitea.finishQueued();
  }

  /** All pull requests, the newest first. */
  async pulls(): Promise<Pull[]> {
    return (await this.api('GET', '/pulls?state=all')) as Pull[];
  }

  /** Names and states of the present statuses of a commit. */
  async statuses(commit: string): Promise<Record<string, string>> {
    const { statuses } = (await this.api('GET', `/commits/${commit}/status`)) as {
      statuses: readonly { context: string; status: string }[] | null;
    };
    return Object.fromEntries((statuses ?? []).map(({ context, status }) => [context, status]));
  }

  /** A user approves the present head of a pull request. */
  async approve(user: string, number: number): Promise<void> {
    await this.api('POST', `/pulls/${number}/reviews`, { event: 'APPROVED', body: 'a review' }, user);
  }

  /** The reasons of `sluice why` that its repository has. */
  async reasons(name: string): Promise<readonly Reason[]> {
    const { store } = this.world;
    const explained = { evaluation: await store.evaluate(name), siblings: [], refusals: [], recordFlaw: undefined };
    return (await stateExplainer(store).explain(explained, {} as never)).reasons ?? [];
  }

  /** With the webhook that the host sends for it. */
  async comment(user: string, number: number, body: string): Promise<void> {
    const { id } = (await this.api('POST', `/issues/${number}/comments`, { body }, user)) as { id: number };
    this.#requests.addWritten({ namespace: 'default', name: 'apps' }, { id: String(id), author: user, body });
  }

  /** Calls the API for a path below that of the repository, as a user of the host or its owner. */
  api(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown, user?: string): Promise<unknown> {
    return this.#gitea.api(method, `${this.path}${path}`, body, user === undefined ? OWNER : this.#logins.get(user));
  }

  /** A user moves a branch to a commit with git, as a force push where it is none of its line. */
  async push(user: string, commit: string, branch: string): Promise<void> {
    const { username, password } = this.#logins.get(user) ?? OWNER;
    const address = new URL(this.#gitea.addressOf(this.#name));
    Object.assign(address, { username, password });
    await run('git', [
      '-c',
      'safe.directory=*',
      '-C',
      this.gitDir,
      'push',
      '--quiet',
      '--force',
      address.href,
      `${commit}:refs/heads/${branch}`,
    ]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.world[Symbol.asyncDispose]();
  }
}
