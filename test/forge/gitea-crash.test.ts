import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, inject, test } from 'vitest';
import { BRANCH, FILE, prepare, runScenario, type ScenarioOptions } from '../faults/forge-scenario.ts';
import { killPlaces } from '../faults/kill-places.ts';
import { placesOf, runVictim } from '../faults/run-forge-victim.ts';
import { fsck, git } from '../support/git/git-cli.ts';
import { skipFor } from '../support/skip.ts';
import { Gitea, OWNER } from './support/gitea.ts';

const missing = inject('giteaMissing');
const gitea = new Gitea({ url: inject('giteaUrl'), folder: inject('giteaFolder') });

/** Processes that are killed, for each way of publication: each takes seconds on a host like this. */
const KILLS = 10;
/** Before and after each request to the host, and each change of the revision. */
const LEAST_PLACES = 25;
/** Of these a user changes the branch at every second place. */
const PUSHES_EVERY = 2;
/** Enough for what must not happen. */
const TURNS_AFTER_PUSH = 5;
const TIMEOUT_MS = process.env.SLUICE_KILLS === undefined ? 1_200_000 : 12_000_000;
const SLUICE = 'kill-sluice';
const ANNA = 'kill-anna';
const SCOPES = ['write:repository', 'write:issue', 'read:user'];

type Way = 'a review' | 'the merge button' | 'a merge of Sluice on a protected branch';

interface Pull {
  readonly number: number;
  readonly state: string;
  readonly merged: boolean;
  readonly body: string;
  readonly merge_commit_sha: string | null;
  readonly merged_by: { readonly login: string } | null;
  readonly head: { readonly sha: string };
  readonly labels: readonly { readonly name: string }[];
}

/** A repository of the host, and a data folder of Sluice. */
interface World {
  readonly options: ScenarioOptions;
  readonly gitDir: string;
  /** Of the repository in the API. */
  readonly path: string;
}

const tokens = new Map<string, Promise<string>>();
let repositories = 0;

function tokenOf(user: string): Promise<string> {
  const token = tokens.get(user) ?? gitea.createUser(user).then(() => gitea.createToken(user, 'crash', SCOPES));
  tokens.set(user, token);
  return token;
}

/** A proposed package in a new repository. */
async function create(folder: string, way: Way): Promise<World> {
  repositories += 1;
  const name = `crash-${repositories}`;
  const packages = await gitea.createRepository(name);
  const [sluice, anna] = await Promise.all([SLUICE, ANNA].map(tokenOf));
  for (const user of [SLUICE, ANNA]) await gitea.addWriter(user, name);
  const path = `/repos/${OWNER.username}/${name}`;
  if (way === 'a merge of Sluice on a protected branch')
    await gitea.api('POST', `${path}/branch_protections`, { rule_name: 'main', enable_push: false });
  const options: ScenarioOptions = {
    ...{ folder: join(folder, name), packages, api: `${gitea.url}/api/v1`, owner: OWNER.username, name },
    ...{ publishOn: way === 'the merge button' ? 'merge' : 'review', user: ANNA, token: anna ?? '' },
    sinceMs: Date.now(),
    gitea: { username: SLUICE, token: sluice ?? '' },
  };
  await prepare(options);
  return { options, gitDir: gitea.pathOf(name), path };
}

async function pullsOf({ path }: World): Promise<Pull[]> {
  const pulls = (await gitea.api('GET', `${path}/pulls?state=all`)) as Pull[];
  // A list does not contain by whom they were merged.
  return Promise.all(pulls.map(async ({ number }) => (await gitea.api('GET', `${path}/pulls/${number}`)) as Pull));
}

/**
 * Without those that Sluice has closed at once: unlike GitHub, Gitea opens one for each of two requests that arrive at the same time, which
 * needs two processes.
 */
async function keptPullsOf(world: World): Promise<Pull[]> {
  const pulls = await pullsOf(world);
  const isSecond = ({ number, state, merged, body }: Pull) =>
    state === 'closed' &&
    !merged &&
    pulls.some(
      (first) => first.number < number && body === `Another process has opened #${first.number} for the same branch.`,
    );
  return pulls.filter((pull) => !isSecond(pull));
}

async function reviewsOf({ path }: World, { number }: Pull): Promise<{ readonly commit_id: string }[]> {
  return (await gitea.api('GET', `${path}/pulls/${number}/reviews`)) as { commit_id: string }[];
}

/** A user changes the package in the branch of the proposal. */
async function push({ path }: World): Promise<void> {
  const { sha } = (await gitea.api('GET', `${path}/contents/${FILE}?ref=${encodeURIComponent(BRANCH)}`)) as {
    sha: string;
  };
  const content = Buffer.from('kind: A\napiVersion: v1\nmetadata: {name: changed}\n').toString('base64');
  await gitea.api('PUT', `${path}/contents/${FILE}`, { branch: BRANCH, content, sha });
}

async function expectPublished(world: World, way: Way, place: string): Promise<void> {
  const { gitDir, path } = world;
  // The host closes it when it has read that the branch is gone.
  await expect.poll(() => keptPullsOf(world), { message: place }).toMatchObject([{ state: 'closed' }]);
  const [pull] = (await keptPullsOf(world)) as [Pull];
  const at = (commit: string) => git(gitDir, ['rev-parse', `${commit}:${FILE}`]);
  expect(git(gitDir, ['tag']).split('\n'), place).toEqual(['app/v1']);
  expect(at('main'), place).toBe(at('app/v1'));
  // The first commit of the repository, and one publication.
  expect(git(gitDir, ['rev-list', '--count', '--first-parent', 'main']), place).toBe('2');
  expect(git(gitDir, ['for-each-ref', `refs/heads/${BRANCH}`]), place).toBe('');
  if (way === 'a review') expect(pull.merged_by, place).toBeNull();
  else {
    const merger = way === 'the merge button' ? ANNA : SLUICE;
    expect(pull, place).toMatchObject({ merged: true, merged_by: { login: merger } });
    expect(git(gitDir, ['rev-parse', 'app/v1^{commit}']), place).toBe(pull.merge_commit_sha);
  }
  if (way !== 'the merge button') {
    const reviews = await reviewsOf(world, pull);
    // With two processes there are two users, who review at the same time.
    expect(new Set(reviews.map(({ commit_id }) => at(commit_id))), place).toEqual(new Set([at('app/v1')]));
  }
  expect(pull.labels, place).toMatchObject([{ name: 'package' }]);
  const statuses = (await gitea.api('GET', `${path}/commits/${pull.head.sha}/status`)) as {
    statuses: { context: string; status: string }[];
  };
  expect(statuses.statuses, place).toContainEqual(
    expect.objectContaining({ context: 'sluice/ready', status: 'success' }),
  );
}

describe('a kill between two calls', { ...skipFor(missing !== '' && missing), timeout: TIMEOUT_MS }, () => {
  test.each<Way>(['a review', 'the merge button', 'a merge of Sluice on a protected branch'])(
    'of a publication by %s: one pull request, nothing that was not judged, and nothing lost',
    async (way) => {
      const folder = mkdtempSync(join(tmpdir(), 'sluice-gitea-crash-'));
      try {
        const whole = await create(folder, way);
        const complete = await runVictim(whole.options, 0);
        const places = placesOf(complete);
        expect(places, complete.output).toBeGreaterThanOrEqual(LEAST_PLACES);
        await expectPublished(whole, way, 'complete');

        let killed = 0;
        let pushed = 0;
        const chosen = killPlaces(places, KILLS);
        for (const [kill, place] of chosen.entries()) {
          const text = `place ${place}`;
          const world = await create(folder, way);
          const run = await runVictim(world.options, place);
          // A host that is faster than the first time needs fewer calls.
          if (run.killed) killed += 1;
          else expect(placesOf(run), run.output).toBeLessThan(place);
          const [pull] = await pullsOf(world);
          const wasReviewed = pull !== undefined && (await reviewsOf(world, pull)).length > 0;
          const isOpen = git(world.gitDir, ['for-each-ref', `refs/heads/${BRANCH}`]) !== '' && pull?.merged !== true;
          const isChanged = way !== 'the merge button' && kill % PUSHES_EVERY === 1 && isOpen;
          if (isChanged) await push(world);
          if (isChanged && wasReviewed) {
            pushed += 1;
            expect(await runScenario(world.options, TURNS_AFTER_PUSH), text).toBe('Proposed');
            expect(git(world.gitDir, ['tag']), text).toBe('');
            expect(await pullsOf(world), text).toMatchObject([{ state: 'open' }]);
          } else {
            expect(await runScenario(world.options), text).toBe('Published');
            await expectPublished(world, way, text);
          }
          fsck(world.gitDir);
        }
        console.log(
          `${way}: ${killed} kills at ${chosen.length} of ${places} places, ${pushed} with a push after the review`,
        );
        expect(killed).toBeGreaterThan(0);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  );
});

test('two processes that have the host merge the same proposal: one pull request, one merge, and one publication', {
  ...skipFor(missing !== '' && missing),
  timeout: TIMEOUT_MS,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-gitea-two-'));
  try {
    const way = 'a merge of Sluice on a protected branch';
    const world = await create(folder, way);
    const options = { ...world.options, isBesideAnother: true };
    const runs = await Promise.all([runVictim(options, 0), runVictim(options, 0)]);
    for (const run of runs) expect(placesOf(run), run.output).toBeGreaterThanOrEqual(0);
    await expectPublished(world, way, 'two processes');
    fsck(world.gitDir);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
