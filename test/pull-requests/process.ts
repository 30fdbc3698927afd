import { setTimeout as delay } from 'node:timers/promises';
import { approvalController } from '../../controllers/approval/approval-controller.ts';
import { proposalController } from '../../controllers/proposal/proposal-controller.ts';
import { pullRequestController } from '../../controllers/pull-request/pull-request-controller.ts';
import { userPullRequestController } from '../../controllers/user-pull-request/user-pull-request-controller.ts';
import type { ControllerOptions } from '../../src/controller/controller.ts';
import { toObject, watchKind } from '../../src/controller/source.ts';
import type { Forge } from '../../src/forge/forge.ts';
import { SharedLists } from '../../src/forge/shared-lists.ts';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import type { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import type { Renderer } from '../../src/package/plan/ports/renderer.ts';
import type { ServerTrust } from '../../src/package/store/opening/open-repository-trust.ts';
import { reviewsOf } from '../../src/package/store/policies/repository-reviews.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { type Fixture, fixture, type KeptData } from '../support/fixture.ts';
import { protectMain } from '../support/protected-main.ts';
import { Gate } from './gate.ts';

/** Between two reads of the refs. */
const SYNC_MS = 15_000;
/** Within which what has no timer of the manual clock ends. */
const STUCK_MS = 3000;

export interface ProcessOptions {
  readonly clock: ManualClock;
  readonly trust: ServerTrust;
  readonly kept: KeptData;
  /** Path of the repository. */
  readonly path: string;
  readonly renderer: Renderer;
  /** The host refuses pushes of Sluice to the main branch. */
  readonly refusesPushes: boolean;
  readonly openForge: () => Forge;
  readonly mayApprove: (subject: string) => boolean;
}

/** One process of Sluice with the controllers of proposals and pull requests; what it keeps in memory ends with it. */
export class SluiceProcess {
  readonly world: Fixture;
  readonly gate: Gate;
  readonly #options: ProcessOptions;
  readonly #forges: Forge[] = [];
  /** A killed process writes nothing any more. */
  isKilled = false;
  /** How often the manager was not idle by its own rules. */
  unsettled = 0;

  private constructor(options: ProcessOptions, world: Fixture) {
    this.#options = options;
    this.gate = new Gate(options.clock);
    this.world = world;
  }

  static async start(options: ProcessOptions): Promise<SluiceProcess> {
    const { clock, trust, kept, path } = options;
    const made = new SluiceProcess(options, await fixture(clock, trust, kept));
    await made.world.register('apps', { repo: path });
    made.#guardGit();
    for (const controller of made.#controllers()) made.world.manager.addController(made.gate.behind(controller));
    await made.world.manager.start();
    return made;
  }

  /** Ends it: what is in memory is lost. */
  async stop(): Promise<void> {
    this.isKilled = true;
    this.gate.open();
    for (const forge of this.#forges) await forge.close();
    await this.world[Symbol.asyncDispose]();
  }

  /** Lets it work for this time, as far as it has something to do. */
  async work(milliseconds: number): Promise<void> {
    const { clock } = this.#options;
    const end = clock.now() + milliseconds;
    this.gate.open();
    await this.#idle();
    for (;;) {
      const next = clock.nextDelay;
      if (next === undefined || clock.now() + next > end) break;
      // What is due within the same second is one step.
      clock.advance(Math.min(next + 999, end - clock.now()));
      await this.#idle();
    }
    clock.advance(Math.max(0, end - clock.now()));
    await this.#idle();
    this.gate.close();
  }

  async #idle(): Promise<void> {
    const enough = new AbortController();
    const idle = this.world.manager.idle({ failureLimit: 1, signal: enough.signal }).then(
      () => true,
      () => false,
    );
    for (let waits = 1; ; waits += 1) {
      const isIdle = await Promise.race([
        idle,
        delay(STUCK_MS, undefined, { ref: false, signal: enough.signal }).catch(() => undefined),
      ]);
      if (isIdle !== undefined) break;
      const isWorking = [...this.world.manager.metrics().values()].some(({ processing }) => processing > 0);
      if (!isWorking || waits > 20) {
        this.unsettled += 1;
        break;
      }
    }
    enough.abort();
    await idle;
  }

  #guardGit(): void {
    const repository = this.world.store.repository('apps');
    if (this.#options.refusesPushes) protectMain(repository);
    const { git } = repository;
    const transaction = git.transaction.bind(git);
    git.transaction = async (updates) => {
      if (this.isKilled) throw new Error('the process was killed');
      return transaction(updates);
    };
  }

  #controllers(): readonly ControllerOptions[] {
    const { clock, renderer, mayApprove } = this.#options;
    const { client, store } = this.world;
    const lists = new SharedLists(clock);
    const openForge = () => {
      const forge = this.#options.openForge();
      this.#forges.push(forge);
      return forge;
    };
    const recorder = this.world.recorder('controller:pull-request');
    const mayUse = async ({ name }: { readonly name: string }) => mayApprove(name);
    return [
      proposalController({ client, store, clock }),
      approvalController({ client, store, clock }),
      pullRequestController({
        ...{ client, store, clock, renderer, openForge, lists, recorder },
        ...{ mayApprove: mayUse, maySetConditions: async () => true },
      }),
      userPullRequestController({
        ...{ client, store, clock, renderer, restrictedRenderer: renderer, openForge, lists, recorder },
        ...{ mayApprove: mayUse, mayCreate: async () => true },
        reviewsOf: async (object) => reviewsOf(object, (await client.list(packagePolicyKind, {})).items),
      }),
      {
        name: 'sync',
        sources: [watchKind(repositoryKind, { predicate: ({ type }) => type === 'add', map: toObject })],
        reconcile: async () => {
          await this.sync();
          return { requeueAfter: SYNC_MS, reason: 'the refs are read' };
        },
      },
    ];
  }

  /** Reads the refs, and reports the main branch, as the controller `repository` does. */
  async sync(): Promise<void> {
    const { client, store } = this.world;
    const repository = store.repository('apps');
    await repository.sync();
    const object = await client.get(repositoryKind, { namespace: 'default', name: 'apps' });
    const { mainHead } = repository.index;
    if (mainHead === undefined || mainHead === object.status?.gitCommitHash) return;
    try {
      await client.updateStatus(repositoryKind, { ...object, status: { ...object.status, gitCommitHash: mainHead } });
    } catch (error) {
      if (!isSluiceError(error, 'Conflict')) throw error;
    }
  }
}
