import { pullRequestController } from '../../../controllers/pull-request/pull-request-controller.ts';
import { SyncRequests } from '../../../controllers/repository/sync-requests.ts';
import { userPullRequestController } from '../../../controllers/user-pull-request/user-pull-request-controller.ts';
import type { ControllerOptions } from '../../../src/controller/controller.ts';
import { GitHubForge } from '../../../src/forge/github/github-forge.ts';
import { SharedLists } from '../../../src/forge/shared-lists.ts';
import { ManualClock } from '../../../src/foundation/time/manual-clock.ts';
import { DEFAULT_NETWORK } from '../../../src/git/network/git-network.ts';
import { reviewsOf } from '../../../src/package/store/policies/repository-reviews.ts';
import { packagePolicyKind } from '../../../src/resource/kinds/sluice/package-policy.ts';
import { keyText, type ObjectKey } from '../../../src/resource/object/object.ts';
import { ANNA, fixture } from '../../support/fixture.ts';
import { git } from '../../support/git/git-cli.ts';
import { APP, GitHubServer } from '../../support/github/github-server.ts';
import { until } from './waiting.ts';

const REPOSITORY: ObjectKey = { namespace: 'default', name: 'apps' };
const CONTEXT = { signal: new AbortController().signal, failures: 0 };
/** Pull requests of Sluice; all others are of users. */
const PROPOSALS = 20;
const HOUR_MS = 3_600_000;

/** The requests of a repository in one hour without a change. */
export interface IdleHour {
  readonly all: number;
  /** With the response 304, which GitHub does not count. */
  readonly free: number;
}

/**
 * Two hours by a clock of its own, with the controllers that read pull requests, on the checked GitHub server with this number of open ones: the
 * first one without webhooks; before the second one a message has arrived, as from a host that reports all changes.
 */
export async function idleHours(
  open: number,
): Promise<{ readonly withoutWebhooks: IdleHour; readonly withWebhooks: IdleHour }> {
  const server = new GitHubServer();
  await server.listen();
  const repository = server.createRepository('acme', 'apps', ['acme', 'anna', APP.user]);
  const clock = new ManualClock(Date.now());
  const world = await fixture();
  const { client, store } = world;
  const forges: GitHubForge[] = [];
  try {
    openUserPulls(repository, open - PROPOSALS);
    await world.register('apps', { repo: repository.gitDir });
    const host = { provider: 'github', api: server.api, secretRef: { name: 'forge', key: 'token' } } as const;
    await client.create(packagePolicyKind, {
      metadata: { name: 'review' },
      spec: { review: { forge: host } },
    } as never);
    const names: string[] = [];
    for (let number = 0; number < PROPOSALS; number += 1) {
      const { name } = await world.draft(`apps/app-${number}/v1`);
      await store.update(name, { action: 'propose' }, ANNA);
      names.push(name);
    }
    await until('the policy applies', async () => world.policyFor(store.get(names[0] ?? '')).review !== undefined);
    const openForge = () => {
      const app = { id: APP.id, privateKey: server.privateKey, installation: APP.installation };
      const at = { api: server.api, owner: 'acme', name: 'apps', network: DEFAULT_NETWORK };
      const forge = new GitHubForge({ ...at, tokenName: 'Secret default/forge', credentials: async () => ({ app }) });
      forges.push(forge);
      return forge;
    };
    const requests = new SyncRequests(clock);
    const lists = new SharedLists(clock);
    const common = { client, store, clock, openForge, requests, lists, mayApprove: undefined, renderer: undefined };
    const controllers = [
      pullRequestController({ ...common, maySetConditions: undefined, recorder: world.recorder('pull-request') }),
      userPullRequestController({
        ...{
          ...common,
          restrictedRenderer: undefined,
          mayCreate: undefined,
          recorder: world.recorder('user-pull-request'),
        },
        reviewsOf: async (object) => reviewsOf(object, (await client.list(packagePolicyKind, {})).items),
      }),
    ].map((options) => new Driven(options, clock));
    for (const key of [...names.map(revisionKey), REPOSITORY]) controllers[0]?.add(key);
    controllers[1]?.add(REPOSITORY);
    const run = async (milliseconds: number) => {
      for (const end = clock.now() + milliseconds; ; ) {
        for (const controller of controllers) await controller.work();
        const next = Math.min(...controllers.map(({ dueAt }) => dueAt), end);
        if (next <= clock.now()) continue;
        clock.advance(next - clock.now());
        if (clock.now() >= end) return;
      }
    };
    const hour = async (): Promise<IdleHour> => {
      // Until it polls as in quiet times.
      await run(HOUR_MS / 4);
      const before = server.requests.length;
      await run(HOUR_MS);
      const sent = server.requests.slice(before);
      return { all: sent.length, free: sent.filter(({ status }) => status === 304).length };
    };
    const withoutWebhooks = await hour();
    requests.addReview(REPOSITORY, { pull: { number: repository.pulls.length, isReview: true, isComment: false } });
    for (const controller of controllers) controller.add(REPOSITORY);
    const withWebhooks = await hour();
    for (const problem of server.problems) console.log(`not as the host describes its API: ${problem}`);
    return { withoutWebhooks, withWebhooks };
  } finally {
    for (const forge of forges) await forge.close();
    await world[Symbol.asyncDispose]();
    await server.close();
  }
}

function revisionKey(name: string): ObjectKey {
  return { namespace: 'default', name: name.slice(name.indexOf('/') + 1) };
}

/** Of one commit, with a branch for each. */
function openUserPulls(repository: ReturnType<GitHubServer['createRepository']>, count: number): void {
  const commit = repository.commit('user/first');
  const branches = Array.from({ length: count }, (_, index) => `user/${index}`);
  const lines = branches.map((branch) => `create refs/heads/${branch} ${commit}\n`).join('');
  git(repository.gitDir, ['update-ref', '--stdin'], lines);
  for (const head of branches) repository.open('anna', { head, base: 'main', title: head }, repository);
}

/** A controller whose queue goes by the clock. Leaves out the checks of pull requests of users, which have nothing to do in quiet times. */
class Driven {
  readonly #options: ControllerOptions;
  readonly #clock: ManualClock;
  readonly #due = new Map<string, { readonly key: ObjectKey; readonly at: number }>();

  constructor(options: ControllerOptions, clock: ManualClock) {
    this.#options = options;
    this.#clock = clock;
    const enqueue = (key: ObjectKey) => this.add(key);
    // The other sources follow objects, which do not change.
    options.sources.at(-1)?.start({ enqueue, prioritize: () => undefined } as never);
  }

  add(key: ObjectKey): void {
    if (/^[^.]+\.\d+$/.test(key.name)) return;
    this.#due.set(keyText(key), { key, at: this.#clock.now() });
  }

  get dueAt(): number {
    return Math.min(...[...this.#due.values()].map(({ at }) => at), Number.POSITIVE_INFINITY);
  }

  async work(): Promise<void> {
    for (const [id, { key, at }] of [...this.#due]) {
      if (at > this.#clock.now()) continue;
      this.#due.delete(id);
      const result = await this.#options.reconcile(key, CONTEXT);
      const { requeueAfter } = result ?? {};
      if (requeueAfter !== undefined && !this.#due.has(id))
        this.#due.set(id, { key, at: this.#clock.now() + Math.max(50, requeueAfter) });
    }
  }
}
