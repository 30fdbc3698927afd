import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { fsck } from '../support/git/git-cli.ts';
import type { GitHubRepository } from '../support/github/github-repository.ts';
import { GitHubServer } from '../support/github/github-server.ts';
import type { ScenarioOptions } from './forge-scenario.ts';
import { killPlaces } from './kill-places.ts';
import { prepareScenario, runAnyScenario } from './run-any-scenario.ts';
import { placesOf, runVictim } from './run-forge-victim.ts';

export interface Kills {
  /** The scenario has so many places at least. */
  readonly leastPlaces: number;
  /** At how many of them it is killed. */
  readonly kills: number;
}

type Way = Pick<ScenarioOptions, 'publishOn'> &
  Partial<Pick<ScenarioOptions, 'batch' | 'mergeMethod' | 'movesMain' | 'userPulls'>>;

/** A scenario on the checked GitHub server, whose state can be restored after each kill of a process. */
export class GitHubCrash {
  readonly server: GitHubServer;
  readonly repository: GitHubRepository;
  readonly options: ScenarioOptions;
  readonly #folder: string;

  private constructor(server: GitHubServer, repository: GitHubRepository, folder: string, options: ScenarioOptions) {
    this.server = server;
    this.repository = repository;
    this.options = options;
    this.#folder = folder;
  }

  /** Whatever happens in `test`, the repository stays valid, and each request and response keeps to the published schemas. */
  static async use(way: Way, test: (crash: GitHubCrash) => Promise<void>): Promise<void> {
    const crash = await GitHubCrash.#open(way);
    try {
      await test(crash);
      fsck(crash.repository.gitDir);
      expect(crash.server.problems).toEqual([]);
    } finally {
      await crash.#close();
    }
  }

  static async #open(way: Way): Promise<GitHubCrash> {
    const server = new GitHubServer();
    await server.listen();
    const folder = mkdtempSync(join(tmpdir(), 'sluice-forge-crash-'));
    const repository = server.createRepository('acme', 'packages', ['acme', 'anna']);
    const options: ScenarioOptions = {
      ...{ folder: join(folder, 'data'), packages: repository.gitDir, api: server.api, ...way },
      ...{ owner: 'acme', name: 'packages', user: 'anna', token: server.createToken('anna'), sinceMs: Date.now() },
    };
    const made = new GitHubCrash(server, repository, folder, options);
    mkdirSync(options.folder);
    writeFileSync(join(options.folder, 'app.pem'), server.privateKey, { mode: 0o600 });
    await prepareScenario(options);
    for (const [from, to] of made.#copies()) cpSync(from, to, { recursive: true });
    return made;
  }

  /** The state after `prepare`, on the host too. */
  reset(): void {
    const { repository } = this;
    for (const [to, from] of this.#copies()) {
      rmSync(to, { recursive: true, force: true });
      cpSync(from, to, { recursive: true });
    }
    for (const list of [repository.pulls, repository.runs, repository.statuses]) list.length = 0;
    repository.labels.clear();
  }

  /**
   * Runs the scenario whole, then kills it at places of it, after each of which another process continues. `expectPublished` checks the host after
   * each; `name` is that of the place.
   */
  async killAtPlaces({ leastPlaces, kills }: Kills, expectPublished: (name: string) => void): Promise<void> {
    const { options } = this;
    const complete = await runVictim(options, 0);
    const places = placesOf(complete);
    expect(places, complete.output).toBeGreaterThanOrEqual(leastPlaces);
    expectPublished('complete');
    let killed = 0;
    const chosen = killPlaces(places, kills);
    for (const place of chosen) {
      this.reset();
      const run = await runVictim(options, place);
      // A run that is faster than the first one needs fewer calls.
      if (run.killed) killed += 1;
      else expect(placesOf(run), run.output).toBeLessThan(place);
      expect(await runAnyScenario(options), `place ${place}`).toBe('Published');
      expectPublished(`place ${place}`);
    }
    expect(killed).toBeGreaterThan(0);
  }

  /** Two processes run the scenario at once, which meet at different calls in each round. */
  async runTwo(rounds: number, expectPublished: (name: string) => void): Promise<void> {
    const options = { ...this.options, isBesideAnother: true };
    for (let round = 1; round <= rounds; round += 1) {
      this.reset();
      const runs = await Promise.all([runVictim(options, 0), runVictim(options, 0)]);
      // One that begins when the other one is done has nothing to call.
      for (const run of runs) expect(placesOf(run), run.output).toBeGreaterThanOrEqual(0);
      expectPublished(`round ${round}`);
    }
  }

  async #close(): Promise<void> {
    await this.server.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #copies(): readonly (readonly [string, string])[] {
    const saved = join(this.#folder, 'saved');
    return [
      [this.options.folder, join(saved, 'data')],
      [this.repository.gitDir, join(saved, 'packages.git')],
    ];
  }
}
