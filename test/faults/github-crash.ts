import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { GitHubRepository } from '../support/github/github-repository.ts';
import { GitHubServer } from '../support/github/github-server.ts';
import { prepare, type ScenarioOptions } from './forge-scenario.ts';

/** A proposal on the checked GitHub server, whose state can be restored after each kill of a process. */
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

  static async open(
    way: Pick<ScenarioOptions, 'publishOn'> & Partial<Pick<ScenarioOptions, 'batch' | 'mergeMethod' | 'movesMain'>>,
  ): Promise<GitHubCrash> {
    const server = new GitHubServer();
    await server.listen();
    const folder = mkdtempSync(join(tmpdir(), 'sluice-forge-crash-'));
    const repository = server.createRepository('acme', 'packages', ['acme', 'anna']);
    const options: ScenarioOptions = {
      ...{ folder: join(folder, 'data'), packages: repository.gitDir, api: server.api, ...way },
      ...{ owner: 'acme', name: 'packages', user: 'anna', token: server.createToken('anna') },
    };
    const made = new GitHubCrash(server, repository, folder, options);
    mkdirSync(options.folder);
    writeFileSync(join(options.folder, 'app.pem'), server.privateKey, { mode: 0o600 });
    await prepare(options);
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

  async close(): Promise<void> {
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
