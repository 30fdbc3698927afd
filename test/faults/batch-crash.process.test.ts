import { expect, test } from 'vitest';
import { git } from '../support/git/git-cli.ts';
import type { GitHubRepository } from '../support/github/github-repository.ts';
import type { ScenarioOptions } from './forge-scenario.ts';
import { GitHubCrash } from './github-crash.ts';

const PACKAGES = ['api', 'db', 'web'];
const LEAST_PLACES = 40;
const KILLS = 10;
/** A process for each kill: a minute and a half for each way, beside other tests. */
const TIMEOUT_MS = 1_200_000;
const ROUNDS = 3;

test.each(['review', 'merge'] as const)(
  'a kill between calls of the publication of three packages in one pull request by a %s: one pull request, and none is lost',
  { timeout: TIMEOUT_MS },
  (publishOn) =>
    GitHubCrash.use({ publishOn, batch: PACKAGES }, (crash) =>
      crash.killAtPlaces({ leastPlaces: LEAST_PLACES, kills: KILLS }, (place) =>
        expectPublished(crash.repository, publishOn, place),
      ),
    ),
);

test.each(['review', 'merge'] as const)(
  'two processes with the same three proposals: one pull request with all of them, and none is lost by a %s',
  { timeout: TIMEOUT_MS },
  (publishOn) =>
    GitHubCrash.use({ publishOn, batch: PACKAGES }, (crash) =>
      crash.runTwo(ROUNDS, (round) => expectPublished(crash.repository, publishOn, round)),
    ),
);

function expectPublished(
  { gitDir, pulls, runs }: GitHubRepository,
  publishOn: ScenarioOptions['publishOn'],
  place: string,
): void {
  expect(pulls, place).toHaveLength(1);
  const [pull] = pulls;
  expect(pull?.head.branch, place).toMatch(/^sluice\/batch\//);
  const tags = PACKAGES.map((name) => `${name}/v1`);
  expect(git(gitDir, ['tag']).split('\n'), place).toEqual(tags);
  for (const [index, name] of PACKAGES.entries()) {
    const at = (commit = '') => git(gitDir, ['rev-parse', `${commit}:${name}`]);
    expect(at('main'), place).toBe(at(tags[index]));
    if (publishOn === 'merge')
      expect(git(gitDir, ['rev-parse', `${tags[index]}^{commit}`]), place).toBe(pull?.merged?.commit);
  }
  expect(pull?.merged === undefined, place).toBe(publishOn === 'review');
  expect(pull?.closedAt, place).toBeDefined();
  expect(pull?.body?.match(/sluice:begin/g), place).toHaveLength(1);
  expect(git(gitDir, ['for-each-ref', 'refs/heads/sluice', 'refs/heads/proposed']), place).toBe('');
  expect(runs.findLast(({ name }) => name === 'sluice/ready')?.conclusion, place).toBe('success');
}
