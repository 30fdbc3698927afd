import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { pullRequestController } from '../../controllers/pull-request/pull-request-controller.ts';
import { GitHubForge } from '../../src/forge/github/github-forge.ts';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import { systemClock } from '../../src/foundation/time/clock.ts';
import { DEFAULT_NETWORK } from '../../src/git/network/git-network.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { type Fixture, fixture } from '../support/fixture.ts';
import { APP } from '../support/github/github-server.ts';
import { folderTrust } from '../support/trust.ts';

export const REVISION = 'apps.app.v1';
export const BRANCH = 'proposed/app/v1';
const CONTEXT = { signal: new AbortController().signal, failures: 0 };
const MAX_TURNS = 8;

export interface ScenarioOptions {
  /** Of the key and the ledger, which outlive the process. */
  readonly folder: string;
  /** Path of the repository of packages, which the host has. */
  readonly packages: string;
  readonly api: string;
  readonly publishOn: 'review' | 'merge';
  /** Of the user who decides. */
  readonly token: string;
}

interface Pull {
  readonly number: number;
  readonly state: string;
  readonly head: { readonly sha: string };
}

/** A process on the data of the options. */
export async function open({ folder, packages }: Pick<ScenarioOptions, 'folder' | 'packages'>): Promise<Fixture> {
  const world = await fixture(systemClock, await folderTrust(join(folder, 'trust')));
  await world.register('apps', { repo: packages });
  return world;
}

/**
 * A proposal becomes a pull request of a GitHub App, a user of the host approves or merges it once, and it is published. Continues whatever an
 * earlier process left. Returns its lifecycle when it is published, or nothing more happens.
 */
export async function runScenario(options: ScenarioOptions): Promise<string> {
  const { folder, api, publishOn } = options;
  const world = await open(options);
  const forge = new GitHubForge({
    ...{ api, owner: 'acme', name: 'packages', network: DEFAULT_NETWORK, tokenName: 'Secret default/github' },
    credentials: async () => ({
      app: { id: APP.id, privateKey: readFileSync(join(folder, 'app.pem'), 'utf8'), installation: APP.installation },
    }),
  });
  try {
    await world.client.create(packagePolicyKind, {
      metadata: { name: 'review' },
      spec: {
        review: {
          forge: { provider: 'github', api, secretRef: { name: 'github' } },
          ...{ publishOn, approvers: [{ user: 'anna', subject: 'anna@example.com' }], labels: ['package'] },
        },
      },
    });
    while (world.policyFor(world.store.get(REVISION)).review === undefined) await delay(5);
    const { client, store } = world;
    const controller = pullRequestController({
      ...{
        client,
        store,
        clock: systemClock,
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
    for (let turn = 0; turn < MAX_TURNS; turn += 1) {
      for (const name of [REVISION, 'apps', REVISION]) await reconcile(name);
      if (world.store.get(REVISION).lifecycle === 'Published') break;
      await decide(options);
      await world.store.repository('apps').sync();
    }
    await reconcile(REVISION);
    return world.store.get(REVISION).lifecycle;
  } finally {
    await forge.close();
    await world[Symbol.asyncDispose]();
  }
}

/** What the user does, once. */
async function decide({ api, token, publishOn }: ScenarioOptions): Promise<void> {
  const call = async (method: string, path: string, body?: object): Promise<unknown> => {
    const response = await fetch(`${api}/repos/acme/packages${path}`, {
      ...{ method, headers: { authorization: `Bearer ${token}` } },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.json();
  };
  const [pull] = (await call('GET', '/pulls?state=open')) as Pull[];
  if (pull === undefined) return;
  if (publishOn === 'merge') await call('PUT', `/pulls/${pull.number}/merge`, { sha: pull.head.sha });
  else if (((await call('GET', `/pulls/${pull.number}/reviews`)) as unknown[]).length === 0) {
    // Hosts record times in seconds, and polls are seconds apart: two changes of one second look like one only here.
    await delay(1000 - (Date.now() % 1000));
    await call('POST', `/pulls/${pull.number}/reviews`, { event: 'APPROVE', body: 'fine' });
  }
}
