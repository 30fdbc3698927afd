import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pullRequestController } from '../../controllers/pull-request/pull-request-controller.ts';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import { systemClock } from '../../src/foundation/time/clock.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { ANNA, type Fixture, fixture } from '../support/fixture.ts';
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
}

/** A process on the data of the options. `folder` has the key and the ledger, which outlive it. */
export async function open({
  folder,
  packages,
  gitea,
}: Pick<ScenarioOptions, 'folder' | 'packages' | 'gitea'>): Promise<Fixture> {
  const world = await fixture(systemClock, await folderTrust(join(folder, 'trust')));
  const basic = gitea && { username: gitea.username, password: gitea.token };
  await world.register('apps', { repo: packages, ...(basic === undefined ? {} : { credentials: { basic } }) });
  return world;
}

/** Leaves a proposed package. */
export async function prepare(options: ScenarioOptions): Promise<void> {
  mkdirSync(options.folder, { recursive: true });
  const world = await open(options);
  try {
    const { name } = await world.draft('apps/app/v1', { 'a.yaml': 'kind: A\napiVersion: v1\nmetadata: {name: a}\n' });
    if (name !== REVISION) throw new Error(`the revision is ${name}`);
    await world.store.update(name, { action: 'propose' }, { ...ANNA, actor: { name: 'berta' } });
  } finally {
    await world[Symbol.asyncDispose]();
  }
}

/**
 * A proposal becomes a pull request, a user of the host approves or merges it once, and it is published. Continues whatever an earlier process
 * left. Returns its lifecycle when it is published, or after so many turns.
 */
export async function runScenario(options: ScenarioOptions, turns = paceOf(options).turns): Promise<string> {
  const { api, publishOn, user, gitea } = options;
  const world = await open(options);
  const forge = openForge(options);
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
        },
      },
    });
    while (world.policyFor(world.store.get(REVISION)).review === undefined) await delay(5);
    const { client, store } = world;
    const controller = pullRequestController({
      ...{
        client,
        store,
        clock,
        mayApprove: undefined,
        maySetConditions: undefined,
        renderer: undefined,
        openForge: () => forge,
      },
      recorder: world.recorder('controller:pull-request'),
    });
    const reconcile = (name: string) =>
      // As the manager does, which repeats it.
      controller.reconcile({ namespace: 'default', name }, CONTEXT).catch((error: unknown) => {
        if (!isSluiceError(error)) throw error;
      });
    for (let turn = 0; turn < turns; turn += 1) {
      for (const name of [REVISION, 'apps', REVISION]) await reconcile(name);
      if (world.store.get(REVISION).lifecycle === 'Published') break;
      await decide(options);
      await delay(paceOf(options).pauseMs);
      if (clock instanceof ManualClock) clock.advance(TURN_MS);
      await world.store.repository('apps').sync();
    }
    await reconcile(REVISION);
    return world.store.get(REVISION).lifecycle;
  } finally {
    await forge.close();
    await world[Symbol.asyncDispose]();
  }
}
