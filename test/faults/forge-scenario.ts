import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pullRequestController } from '../../controllers/pull-request/pull-request-controller.ts';
import type { MergeMethod } from '../../src/forge/forge-merging.ts';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import { type Clock, systemClock } from '../../src/foundation/time/clock.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { commitFile } from '../support/delivery-pull-request.ts';
import { ANNA, type Fixture, fixture } from '../support/fixture.ts';
import { git } from '../support/git/git-cli.ts';
import { protectMain } from '../support/protected-main.ts';
import { folderTrust } from '../support/trust.ts';
import { decide, openForge, paceOf, type ScenarioHostOptions } from './forge-scenario-host.ts';

export const REVISION = 'apps.app.v1';
export const BRANCH = 'proposed/app/v1';
/** Of the package. */
export const FILE = 'app/a.yaml';
/** A poll is due again, however long the last one took. */
const TURN_MS = 10_000;
const CONTEXT = { signal: new AbortController().signal, failures: 0 };

export interface ScenarioOptions extends ScenarioHostOptions {
  /** Path or address of the repository of packages, which the host has. */
  readonly packages: string;
  /** Names of packages whose proposals share a pull request; without them, there is one proposal. */
  readonly batch?: readonly string[];
  /** The host reserves the main branch for merges by this method; only for a path. */
  readonly mergeMethod?: MergeMethod;
  /** Another user changes the main branch once, as soon as the proposal is decided on; only for a path. */
  readonly movesMain?: boolean;
  /** Users open the pull requests, see user-merge-scenario.ts. */
  readonly userPulls?: boolean;
  /**
   * When the policy and the Repository were created, in milliseconds since the epoch, before any merge. They outlive each process, as the objects of a
   * server do: what was merged before that publishes nothing.
   */
  readonly sinceMs: number;
}

/** Names of the revisions of a scenario. */
function revisionsOf({ batch }: Pick<ScenarioOptions, 'batch'>): readonly string[] {
  return batch === undefined ? [REVISION] : batch.map((name) => `apps.${name}.v1`);
}

/** A process on the data of the options. `folder` has the key and the ledger, which outlive it. */
export async function open(
  { folder, packages, gitea }: Pick<ScenarioOptions, 'folder' | 'packages' | 'gitea'>,
  clock: Clock = systemClock,
): Promise<Fixture> {
  const world = await fixture(clock, await folderTrust(join(folder, 'trust')));
  const basic = gitea && { username: gitea.username, password: gitea.token };
  await world.register('apps', { repo: packages, ...(basic === undefined ? {} : { credentials: { basic } }) });
  return world;
}

/** Leaves proposed packages. */
export async function prepare(options: ScenarioOptions): Promise<void> {
  mkdirSync(options.folder, { recursive: true });
  const world = await open(options);
  try {
    for (const revision of revisionsOf(options)) {
      const [, folder = ''] = revision.split('.');
      const files = { 'a.yaml': 'kind: A\napiVersion: v1\nmetadata: {name: a}\n' };
      const { name } = await world.draft(`apps/${folder}/v1`, files);
      if (name !== revision) throw new Error(`the revision is ${name}`);
      await world.store.update(name, { action: 'propose' }, { ...ANNA, actor: { name: 'berta' } });
    }
  } finally {
    await world[Symbol.asyncDispose]();
  }
}

/**
 * A proposal becomes a pull request, a user of the host approves or merges it once, and it is published. Continues whatever an earlier process
 * left. Returns its lifecycle when it is published, or after so many turns; for one that did not come through its gates, the reason.
 */
export async function runScenario(options: ScenarioOptions, turns = paceOf(options).turns): Promise<string> {
  const { api, publishOn, user, gitea, mergeMethod, sinceMs } = options;
  let isCreating = true;
  const world = await open(options, { ...systemClock, now: () => (isCreating ? sinceMs : systemClock.now()) });
  const forge = openForge(options);
  let merger: ReturnType<typeof openForge> | undefined;
  const merging = () => {
    merger ??= openForge(options, true);
    return merger;
  };
  // After a poll the controller pauses for several times what it took. By the time of the system, turns without a wait would pass during that
  // pause on a loaded machine, without a look at the host; and how many requests there are would depend on the load.
  const clock = gitea === undefined ? new ManualClock(Date.now()) : systemClock;
  const provider = gitea === undefined ? ('github' as const) : ('gitea' as const);
  try {
    await world.client.create(packagePolicyKind, {
      metadata: { name: 'review' },
      spec: {
        review: {
          forge: { provider, api, secretRef: { name: 'forge' } },
          ...{ publishOn, approvers: [{ user, subject: 'anna@example.com' }], labels: ['package'] },
          ...(options.batch === undefined ? {} : { batch: {} }),
          ...(mergeMethod === undefined ? {} : { mergeMethod }),
        },
      },
    });
    isCreating = false;
    const { client, store } = world;
    const names = revisionsOf(options);
    while (world.policyFor(store.get(names[0] ?? '')).review === undefined) await delay(5);
    if (mergeMethod !== undefined) protectMain(store.repository('apps'));
    const controller = pullRequestController({
      ...{
        client,
        store,
        clock,
        mayApprove: undefined,
        maySetConditions: undefined,
        renderer: undefined,
        openForge: (_review, _namespace, _address, mayMerge) => (mayMerge === true ? merging() : forge),
      },
      recorder: world.recorder('controller:pull-request'),
    });
    const reconcile = (name: string) =>
      // As the manager does, which repeats it.
      controller.reconcile({ namespace: 'default', name }, CONTEXT).catch((error: unknown) => {
        if (!isSluiceError(error)) throw error;
      });
    const pass = async () => {
      await delay(paceOf(options).pauseMs);
      if (clock instanceof ManualClock) clock.advance(TURN_MS);
    };
    const turnOf = async () => {
      for (const name of [...names, 'apps', ...names]) await reconcile(name);
      if (options.batch === undefined) return;
      // The pull request is opened after a wait, its members take over what is decided there, and it shows that.
      for (const wait of [pass, pass, async () => undefined]) {
        await reconcile('apps:batches');
        for (const name of [...names, ...names]) await reconcile(name);
        await wait();
      }
      await reconcile('apps:batches');
    };
    const lifecycle = () => names.map((name) => store.get(name).lifecycle).find((one) => one !== 'Published');
    for (let turn = 0; turn < turns; turn += 1) {
      await turnOf();
      if (lifecycle() === undefined) break;
      await decide(options);
      if (publishOn === 'approval') await approve(world, options);
      if (options.movesMain === true) moveMain(options);
      await pass();
      await store.repository('apps').sync();
    }
    await (options.batch === undefined ? reconcile(REVISION) : turnOf());
    const outOfBand = names.map((name) => store.get(name).outOfBand?.reason).find((one) => one !== undefined);
    return outOfBand ?? lifecycle() ?? 'Published';
  } finally {
    await forge.close();
    await merger?.close();
    await world[Symbol.asyncDispose]();
  }
}

/** A user approves it through the API, once. */
async function approve({ store }: Fixture, { isBesideAnother = false }: ScenarioOptions): Promise<void> {
  const { record, lifecycle } = store.get(REVISION);
  if ((record?.approvals ?? []).length > 0 || lifecycle === 'Published') return;
  try {
    await store.update(REVISION, { action: 'approve' }, { actor: { name: 'anna@example.com' }, face: 'api' });
  } catch (error) {
    // The user of the other process was first.
    if (!isBesideAnother || !isSluiceError(error) || !['Conflict', 'Busy', 'Refused'].includes(error.code)) throw error;
  }
}

function moveMain({ packages }: ScenarioOptions): void {
  const other = 'other.yaml';
  const isMoved = git(packages, ['ls-tree', 'main', other]) !== '';
  if (!isMoved) commitFile(packages, 'main', other, 'a: 1\n');
}
