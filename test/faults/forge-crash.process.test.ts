import { expect, test } from 'vitest';
import { initRepository } from '../../src/git/open/open-repository.ts';
import { git } from '../support/git/git-cli.ts';
import type { GitHubRepository } from '../support/github/github-repository.ts';
import { commitFiles } from '../support/scratch-repository.ts';
import { BRANCH, FILE, runScenario, type ScenarioOptions } from './forge-scenario.ts';
import { GitHubCrash } from './github-crash.ts';
import { killPlaces } from './kill-places.ts';
import { placesOf, runVictim } from './run-forge-victim.ts';

/** Of each way of publication; with the merges of Sluice there are some hundreds (forge-merge-crash.process.test.ts). */
const LEAST_PLACES = 30;
const MAX_PLACES = 120;
const KILLS = 16;
const PUSHES_EVERY = 3;
const ROUNDS = 3;
const COMPLETE = 'complete';
/** After a poll that takes this long, the controller pauses for longer than the whole scenario takes on idle cores. */
const SLOW_POLL_MS = 1000;
/** A process for each place: a minute on idle cores. */
const TIMEOUT_MS = 1_200_000;

test.each(['review', 'merge'] as const)(
  'a kill between two calls of a publication by a %s: one pull request, nothing that was not judged, and nothing lost',
  { timeout: TIMEOUT_MS },
  (publishOn) =>
    GitHubCrash.use({ publishOn }, async (crash) => {
      const { repository, options } = crash;
      const complete = await runVictim(options, 0);
      const places = placesOf(complete);
      expect(places, complete.output).toBeGreaterThanOrEqual(LEAST_PLACES);
      expect(places).toBeLessThan(MAX_PLACES);
      expectPublished(repository, publishOn, COMPLETE);

      // A loaded machine has the same places, so that each of them is met below.
      crash.reset();
      expect(placesOf(await runVictim(options, 0, SLOW_POLL_MS))).toBe(places);
      expectPublished(repository, publishOn, COMPLETE);

      for (const [kill, place] of killPlaces(places, KILLS).entries()) {
        crash.reset();
        expect(await runVictim(options, place), `place ${place}`).toMatchObject({ killed: true });
        // A push at this moment: what was reviewed before it must not open the way for it.
        const isOpen = git(repository.gitDir, ['for-each-ref', `refs/heads/${BRANCH}`]) !== '';
        const isChanged = publishOn === 'review' && kill % PUSHES_EVERY === 0 && isOpen;
        if (isChanged) await push(repository.gitDir);
        const wasReviewed = repository.pulls.some(({ reviews }) => reviews.length > 0);
        const lifecycle = await runScenario(options);
        if (isChanged && wasReviewed) {
          expect(lifecycle, `place ${place}`).toBe('Proposed');
          expect(git(repository.gitDir, ['tag']), `place ${place}`).toBe('');
          expect(ofBranch(repository), `place ${place}`).toHaveLength(1);
        } else {
          expect(lifecycle, `place ${place}`).toBe('Published');
          expectPublished(repository, publishOn, `place ${place}`);
        }
      }
    }),
);

test.each(['review', 'merge'] as const)(
  'two processes with the same proposal: one pull request, and one publication by a %s',
  { timeout: TIMEOUT_MS },
  (publishOn) =>
    GitHubCrash.use({ publishOn }, (crash) =>
      crash.runTwo(ROUNDS, (round) => expectPublished(crash.repository, publishOn, round)),
    ),
);

function ofBranch({ pulls }: GitHubRepository) {
  return pulls.filter(({ head }) => head.branch === BRANCH);
}

function expectPublished(repository: GitHubRepository, publishOn: ScenarioOptions['publishOn'], place: string): void {
  const pulls = ofBranch(repository);
  expect(pulls, place).toHaveLength(1);
  const { reviews = [], merged, labels = new Set() } = pulls[0] ?? {};
  const at = (commit: string) => git(repository.gitDir, ['rev-parse', `${commit}:${FILE}`]);
  expect(git(repository.gitDir, ['tag']).split('\n'), place).toEqual(['app/v1']);
  expect(at('main'), place).toBe(at('app/v1'));
  if (publishOn === 'merge')
    expect(git(repository.gitDir, ['rev-parse', 'app/v1^{commit}']), place).toBe(merged?.commit);
  // With two processes there are two users, who review at the same time.
  else expect(new Set(reviews.map(({ commit }) => at(commit))), place).toEqual(new Set([at('app/v1')]));
  // Users may remove labels, so that they are added once only; a kill between opening and that loses them.
  if (place === COMPLETE) expect([...labels]).toEqual(['package']);
  const ready = repository.runs.filter(({ name }) => name === 'sluice/ready');
  expect(ready.at(-1)?.conclusion, place).toBe('success');
}

async function push(path: string): Promise<void> {
  const repository = await initRepository(path);
  try {
    const files = { [FILE]: 'kind: A\napiVersion: v1\nmetadata: {name: changed}\n' };
    await commitFiles(repository, files, Date.now(), { branch: BRANCH });
  } finally {
    await repository.close();
  }
}
