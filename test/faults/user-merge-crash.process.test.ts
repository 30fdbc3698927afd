import { expect, test } from 'vitest';
import { git } from '../support/git/git-cli.ts';
import type { GitHubRepository } from '../support/github/github-repository.ts';
import { GitHubCrash } from './github-crash.ts';
import { LATE_FILE } from './user-merge-scenario.ts';

const LEAST_PLACES = 40;
const KILLS = 16;
/** A process for each kill, and another one after it. */
const TIMEOUT_MS = 1_200_000;
const ROUNDS = 5;
const WAY = { publishOn: 'merge', userPulls: true } as const;

test(
  'a kill between calls of the publication of what users merged: each package once, as it was merged, and none is lost',
  {
    timeout: TIMEOUT_MS,
  },
  () =>
    GitHubCrash.use(WAY, (crash) =>
      crash.killAtPlaces({ leastPlaces: LEAST_PLACES, kills: KILLS }, (place) =>
        expectPublished(crash.repository, place),
      ),
    ),
);

test(
  'two processes that publish what users merged: each package once, and both say the same of it',
  {
    timeout: TIMEOUT_MS,
  },
  // A user can merge what one process has opened before the other one has checked it.
  () => GitHubCrash.use(WAY, (crash) => crash.runTwo(ROUNDS, (round) => expectPublished(crash.repository, round, 0))),
);

function expectPublished({ gitDir, pulls, runs }: GitHubRepository, place: string, leastChecks = 2): void {
  const [first, second, ...others] = pulls;
  expect(others, place).toEqual([]);
  const at = (revision: string) => git(gitDir, ['rev-parse', revision]);
  expect(git(gitDir, ['tag']).split('\n'), place).toEqual(['db/v1', 'web/v1', 'web/v2']);
  for (const [tag, pull] of [
    ['web/v1', first],
    ['db/v1', first],
    ['web/v2', second],
  ] as const)
    expect(at(`${tag}^{commit}`), `${tag} at ${place}`).toBe(pull?.merged?.commit);
  expect(git(gitDir, ['ls-tree', '--name-only', 'main', LATE_FILE]), place).toBe(LATE_FILE);
  const said = pulls.map(({ comments }) => comments.filter(({ body }) => body.includes('topic=merged')));
  for (const [number, list] of said.entries()) {
    expect(list.length, `comments of ${number + 1} at ${place}`).toBe(1);
    for (const { body } of list) expect(body, place).not.toContain('not published');
  }
  expect(said[0]?.[0]?.body, place).toContain('`db` is **out of band** as `apps.db.merge-1`');
  expect(runs.filter(({ name }) => name === 'sluice/ready').length, place).toBeGreaterThanOrEqual(leastChecks);
}
