import { expect, test } from 'vitest';
import type { MergeMethod } from '../../src/forge/forge-merging.ts';
import { git } from '../support/git/git-cli.ts';
import type { GitHubRepository } from '../support/github/github-repository.ts';
import { APP } from '../support/github/github-server.ts';
import { BRANCH, FILE } from './forge-scenario.ts';
import { GitHubCrash } from './github-crash.ts';

/** Of each way: before and after each request to the host, and each change of the revision. */
const LEAST_PLACES = 30;
const ROUNDS = 3;
/** Two processes for each kill: minutes for all ways together, beside other tests. */
const TIMEOUT_MS = 1_200_000;

interface Way {
  readonly publishOn: 'review' | 'approval';
  readonly mergeMethod: MergeMethod;
  /** The branch has to be rebuilt before the merge, since another user changes the main branch. */
  readonly movesMain: boolean;
  /** The rules are those of classic protection, which GitHub does not state. */
  readonly isClassic?: boolean;
  /** How many. */
  readonly kills: number;
}

test.each<Way>([
  { publishOn: 'review', mergeMethod: 'merge', movesMain: true, kills: 12 },
  { publishOn: 'approval', mergeMethod: 'squash', movesMain: true, kills: 12 },
  { publishOn: 'review', mergeMethod: 'squash', movesMain: false, isClassic: true, kills: 5 },
  { publishOn: 'review', mergeMethod: 'rebase', movesMain: false, kills: 5 },
  { publishOn: 'approval', mergeMethod: 'merge', movesMain: false, kills: 5 },
  { publishOn: 'approval', mergeMethod: 'rebase', movesMain: false, kills: 5 },
])(
  'a merge of Sluice on a GitHub whose rules reserve the main branch for merges, with kills between its calls: %j',
  { timeout: TIMEOUT_MS },
  ({ kills, isClassic = false, ...way }) =>
    GitHubCrash.use(way, async (crash) => {
      crash.repository.protections.set('main', { check: 'sluice/ready', isStrict: true, isClassic });
      await crash.killAtPlaces({ leastPlaces: LEAST_PLACES, kills }, (place) =>
        expectPublished(crash.repository, way, place),
      );
    }),
);

test.each<Pick<Way, 'publishOn' | 'mergeMethod'>>([
  { publishOn: 'review', mergeMethod: 'squash' },
  { publishOn: 'approval', mergeMethod: 'merge' },
])(
  'two processes that have the host merge the same proposal: one merge, and one publication: %j',
  { timeout: TIMEOUT_MS },
  (way) =>
    GitHubCrash.use({ ...way, movesMain: false }, async (crash) => {
      crash.repository.protections.set('main', { check: 'sluice/ready', isStrict: true });
      await crash.runTwo(ROUNDS, (round) => expectPublished(crash.repository, { ...way, movesMain: false }, round));
    }),
);

function expectPublished(
  { gitDir, pulls, runs }: GitHubRepository,
  { publishOn, mergeMethod, movesMain }: Omit<Way, 'kills' | 'isClassic'>,
  place: string,
): void {
  const [pull, ...others] = pulls;
  expect(others, place).toEqual([]);
  expect(pull?.merged, place).toMatchObject({ by: APP.user });
  const at = (commit: string) => git(gitDir, ['rev-parse', `${commit}:${FILE}`]);
  expect(git(gitDir, ['tag']).split('\n'), place).toEqual(['app/v1']);
  const published = git(gitDir, ['rev-parse', 'app/v1^{commit}']);
  expect(published, place).toBe(pull?.merged?.commit);
  // After a kill before main was moved, it is moved after the merge.
  expect(git(gitDir, ['rev-list', '--first-parent', 'main']).split('\n'), place).toContain(published);
  expect(git(gitDir, ['for-each-ref', `refs/heads/${BRANCH}`]), place).toBe('');
  if (publishOn === 'review')
    // With two processes there are two users, who review at the same time.
    expect(new Set(pull?.reviews.map(({ commit }) => at(commit))), place).toEqual(new Set([at('app/v1')]));
  const parents = git(gitDir, ['log', '-1', '--format=%P', published]).split(' ');
  expect(parents, place).toHaveLength(mergeMethod === 'merge' ? 2 : 1);
  const moves = git(gitDir, ['rev-list', '--count', '--first-parent', 'main', '--', 'other.yaml']);
  expect(moves, place).toBe(movesMain ? '1' : '0');
  // The files of the host before, and one publication: each method brings the package once.
  if (mergeMethod !== 'rebase')
    expect(git(gitDir, ['rev-list', '--count', '--first-parent', 'main', '--', FILE]), place).toBe('1');
  expect(runs.filter(({ name }) => name === 'sluice/ready').at(-1)?.conclusion, place).toBe('success');
}
