import { mkdirSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { userPullRequestController } from '../../controllers/user-pull-request/user-pull-request-controller.ts';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { initRepository } from '../../src/git/open/open-repository.ts';
import { reviewsOf } from '../../src/package/store/policies/repository-reviews.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { git } from '../support/git/git-cli.ts';
import { commitFiles } from '../support/scratch-repository.ts';
import { open, type ScenarioOptions } from './forge-scenario.ts';
import { openForge } from './forge-scenario-host.ts';

/** At least between two polls. */
const TURN_MS = 30_000;
const TURNS = 8;
const CONTEXT = { signal: new AbortController().signal, failures: 0 };
/** In the order of their merges; the second one begins at the first. */
export const BRANCHES = ['first', 'second'] as const;
/** What a user pushes to the main branch after the merges: it is part of no publication. */
export const LATE_FILE = 'web/late.yaml';
/** Its gate is closed. */
const GATED = 'info:\n  readinessGates:\n    - conditionType: example.com/Tested\n';
const CONFIG_MAP = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\n';

const kptfile = (name: string, more = '') =>
  `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: ${name}\n${more}`;

/** Leaves the branches of two pull requests. The first one has two packages, the second one changes one of them. */
export async function prepareUserPulls({ folder, packages }: ScenarioOptions): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const repository = await initRepository(packages);
  try {
    const at = Date.now();
    await commitFiles(repository, { 'README.md': 'packages\n' }, at, { branch: 'main' });
    const first = { 'web/Kptfile': kptfile('web'), 'db/Kptfile': kptfile('db', GATED) };
    await commitFiles(repository, first, at, { branch: BRANCHES[0], from: 'refs/heads/main' });
    const second = { 'web/map.yaml': CONFIG_MAP };
    await commitFiles(repository, second, at, { branch: BRANCHES[1], from: `refs/heads/${BRANCHES[0]}` });
  } finally {
    await repository.close();
  }
}

/**
 * Users open two pull requests and merge both, and their packages are published. Continues whatever an earlier process left. Returns `Published`
 * once all of them are as they have to be, else what they are after some turns.
 */
export async function runUserMerges(options: ScenarioOptions): Promise<string> {
  const { api, publishOn, user, sinceMs } = options;
  const clock = new ManualClock(sinceMs);
  const world = await open(options, clock);
  const forge = openForge(options);
  const woken: string[] = [];
  try {
    const { client, store } = world;
    await client.create(packagePolicyKind, {
      metadata: { name: 'review' },
      spec: {
        review: {
          forge: { provider: 'github', api, secretRef: { name: 'forge' } },
          ...{ publishOn, approvers: [{ user, subject: 'anna@example.com' }] },
        },
      },
    });
    // In Sluice itself decisions wait for it. Before the time passes: watches end by this clock.
    const subject = { key: { repository: 'apps', package: 'web', workspace: '' }, name: '', namespace: 'default' };
    const isInForce = () =>
      world.store.repository('apps').policyFor({ ...subject, path: 'web', kptfile: undefined, record: undefined })
        .review;
    while (isInForce() === undefined) await delay(5);
    clock.advance(Date.now() - sinceMs);
    const controller = userPullRequestController({
      ...{ client, store, clock, mayCreate: undefined, mayApprove: undefined },
      ...{ renderer: undefined, restrictedRenderer: undefined, openForge: () => forge },
      reviewsOf: async (repository) => reviewsOf(repository, (await client.list(packagePolicyKind, {})).items),
      recorder: world.recorder('controller:pull-request'),
    });
    controller.sources.at(-1)?.start({ enqueue: ({ name }: { name: string }) => void woken.push(name) } as never);
    const reconcile = (name: string) =>
      // As the manager does, which repeats it.
      controller.reconcile({ namespace: 'default', name }, CONTEXT).catch((error: unknown) => {
        if (!isSluiceError(error)) throw error;
      });
    const stateOf = () =>
      ['web.merge-1', 'web.merge-2', 'db.merge-1'].map((name) => {
        const { lifecycle, outOfBand } = store.find(`apps.${name}`) ?? {};
        return `${name}: ${outOfBand?.reason ?? lifecycle ?? 'none'}`;
      });
    const wanted = ['web.merge-1: Published', 'web.merge-2: Published', 'db.merge-1: GateUnmet'].join(', ');
    for (let turn = 0; turn < TURNS; turn += 1) {
      const isDone = stateOf().join(', ') === wanted;
      await reconcile('apps');
      for (let name = woken.shift(); name !== undefined; name = woken.shift()) await reconcile(name);
      // Once more after the last publication, for what it says about that.
      if (isDone) break;
      await decideOnUserPulls(options);
      clock.advance(TURN_MS);
      await store.repository('apps').sync();
    }
    const state = stateOf().join(', ');
    return state === wanted ? 'Published' : state;
  } finally {
    await forge.close();
    await world[Symbol.asyncDispose]();
  }
}

/** What users do, once: they open the pull requests, and merge them when they were checked; then one pushes to the main branch. */
async function decideOnUserPulls(options: ScenarioOptions): Promise<void> {
  const { api, owner, name, token, packages, isBesideAnother = false } = options;
  const call = async (method: string, path: string, body?: object): Promise<unknown> => {
    const response = await fetch(`${api}/repos/${owner}/${name}${path}`, {
      ...{ method, headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' } },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const isDone = isBesideAnother && [405, 422].includes(response.status);
    if (!response.ok && !isDone) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.json();
  };
  const pulls = (await call('GET', '/pulls?state=all')) as {
    readonly number: number;
    readonly state: string;
    readonly head: { readonly ref: string; readonly sha: string };
  }[];
  const missing = BRANCHES.filter((head) => pulls.every((pull) => pull.head.ref !== head));
  for (const head of missing) await call('POST', '/pulls', { head, base: 'main', title: head });
  if (missing.length > 0) return;
  for (const { number, state, head } of pulls.toSorted((a, b) => a.number - b.number))
    if (state === 'open') await call('PUT', `/pulls/${number}/merge`, { sha: head.sha });
  if (git(packages, ['ls-tree', 'main', LATE_FILE]) !== '') return;
  const repository = await initRepository(packages);
  try {
    await commitFiles(repository, { [LATE_FILE]: CONFIG_MAP }, Date.now(), { branch: 'main' });
  } catch (error) {
    if (!isSluiceError(error, 'Conflict')) throw error;
  } finally {
    await repository.close();
  }
}
