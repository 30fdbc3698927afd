import { expect, test } from 'vitest';
import { fsck, git } from '../support/git/git-cli.ts';
import type { GitHubRepository } from '../support/github/github-repository.ts';
import { runScenario, type ScenarioOptions } from './forge-scenario.ts';
import { GitHubCrash } from './github-crash.ts';
import { placesOf, runVictim } from './run-forge-victim.ts';

const PACKAGES = ['api', 'db', 'web'];
const LEAST_PLACES = 40;
const MAX_PLACES = 160;
/** Of the places, each so many is a kill. */
const STEP = 5;
/** A process for each kill: a minute and a half for each way, beside other tests. */
const TIMEOUT_MS = 1_200_000;

test.each(['review', 'merge'] as const)(
  'a kill between calls of the publication of three packages in one pull request by a %s: one pull request, and none is lost',
  { timeout: TIMEOUT_MS },
  async (publishOn) => {
    const crash = await GitHubCrash.open({ publishOn, batch: PACKAGES });
    const { server, repository, options } = crash;
    try {
      const complete = await runVictim(options, 0);
      const places = placesOf(complete);
      expect(places, complete.output).toBeGreaterThanOrEqual(LEAST_PLACES);
      expect(places).toBeLessThan(MAX_PLACES);
      expectPublished(repository, publishOn, 'complete');
      for (let place = 1; place <= places; place += STEP) {
        crash.reset();
        await runVictim(options, place);
        expect(await runScenario(options), `place ${place}`).toBe('Published');
        expectPublished(repository, publishOn, `place ${place}`);
      }
      fsck(repository.gitDir);
      expect(server.problems).toEqual([]);
    } finally {
      await crash.close();
    }
  },
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
