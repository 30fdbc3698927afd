import { execFileSync } from 'node:child_process';
import { GitHubForge } from '../../src/forge/github/github-forge.ts';
import { systemClock } from '../../src/foundation/time/clock.ts';
import type { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { DEFAULT_NETWORK } from '../../src/git/network/git-network.ts';
import { holdFolder } from '../../src/git/refs/held-folders.ts';
import { GIT_ENVIRONMENT, git, readRef } from '../support/git/git-cli.ts';
import { writeCommit, writeObject, writeRef } from '../support/git/write-objects.ts';
import { countingBudgets } from '../support/github/github-host.ts';
import { type GitHubRepository, type Pull, setHostClock } from '../support/github/github-repository.ts';
import { type Fault, type GitHubRequest, GitHubServer } from '../support/github/github-server.ts';

const OWNER = 'acme';
const NAME = 'packages';
const SLUICE = 'sluice-user';
/** Users who may push. bob and carl are mapped and may approve, dave is mapped and may not, eve is not mapped, the owner may bypass rules. */
export const USERS = ['bob', 'carl', 'dave', 'eve', OWNER] as const;
export type User = (typeof USERS)[number];
export const APPROVERS: readonly string[] = ['bob', 'carl'];
export const MAPPED: readonly string[] = ['bob', 'carl', 'dave'];
export const METHODS = ['merge', 'squash', 'rebase'] as const;

export function subjectOf(user: string): string {
  return `${user}@example.com`;
}

/** A GitHub with one repository, and what its users do. */
export class Host {
  readonly server = new GitHubServer();
  readonly repository: GitHubRepository;
  readonly clock: ManualClock;
  readonly #tokens = new Map<string, string>();
  /** Requests that changed something, of Sluice. */
  writes: string[] = [];
  reads = 0;
  /** What is called before a request of Sluice is handled. */
  onRequest: (request: GitHubRequest) => Fault | undefined = () => undefined;
  readonly #trees = new Map<string, string>();

  readonly #release: () => void;

  private constructor(clock: ManualClock) {
    // As that of a server, so that small repositories in it are read and written without processes.
    this.#release = holdFolder(this.server.folder);
    this.clock = clock;
    this.repository = this.server.createRepository(OWNER, NAME, [...USERS, SLUICE]);
    for (const user of [...USERS, SLUICE]) this.#tokens.set(user, this.server.createToken(user));
  }

  static async open(clock: ManualClock): Promise<Host> {
    setHostClock(clock);
    const host = new Host(clock);
    await host.server.listen();
    host.server.fault = (request) => {
      const isRead = request.method === 'GET' || (request.url.endsWith('/graphql') && isQuery(request.body));
      if (isRead) host.reads += 1;
      else host.writes.push(`${request.method} ${request.url.replace(/^.*\/packages/, '')} ${shortBody(request.body)}`);
      return host.onRequest(request);
    };
    return host;
  }

  async close(): Promise<void> {
    setHostClock(systemClock);
    this.#release();
    await this.server.close();
  }

  get path(): string {
    return this.repository.gitDir;
  }

  openForge(): GitHubForge {
    const token = this.#tokens.get(SLUICE) ?? '';
    return new GitHubForge({
      ...{ api: this.server.api, owner: OWNER, name: NAME, network: DEFAULT_NETWORK, budgets: countingBudgets() },
      ...{ tokenName: 'Secret default/forge', credentials: async () => ({ token }), mayMerge: true },
    });
  }

  /** A request of a user. Returns whether it was accepted. */
  perform(user: User, method: string, path: string, body?: object): boolean {
    const { status } = this.server.perform(
      this.#tokens.get(user) ?? '',
      method,
      `/repos/${OWNER}/${NAME}${path}`,
      body,
    );
    return status < 300;
  }

  head(branch: string): string | undefined {
    return readRef(this.path, `refs/heads/${branch}`);
  }

  get openPulls(): readonly Pull[] {
    return this.repository.pulls.filter(({ closedAt }) => closedAt === undefined);
  }

  /** A user commits files to a branch, by path; null removes. The branch begins at the main one. */
  push(branch: string, files: Readonly<Record<string, string | null>>, message = 'pushed\n'): string {
    const parent = this.head(branch) ?? this.head('main') ?? '';
    const commit = this.#commit(this.#treeWith(parent, files), [parent], message);
    this.#setBranch(branch, commit);
    return commit;
  }

  /** A user merges the main branch into another one. Returns false if they conflict. */
  mergeMain(branch: string): boolean {
    const [head, main] = [this.head(branch), this.head('main')];
    if (head === undefined || main === undefined) return false;
    if (git(this.path, ['rev-list', '--count', `${head}..${main}`]) === '0') return false;
    let tree: string;
    try {
      tree = git(this.path, ['merge-tree', '--write-tree', '--no-messages', head, main]);
    } catch {
      return false;
    }
    this.#setBranch(branch, this.#commit(tree, [head, main], "Merge branch 'main'\n"));
    return true;
  }

  deleteBranch(branch: string): void {
    if (this.head(branch) === undefined) return;
    this.repository.deleteBranch(branch);
    this.repository.follow();
  }

  restoreBranch(branch: string, commit: string): void {
    if (this.head(branch) === undefined) this.#setBranch(branch, commit);
  }

  file(commit: string, path: string): string | undefined {
    try {
      return git(this.path, ['cat-file', 'blob', `${commit}:${path}`]);
    } catch {
      return undefined;
    }
  }

  /** The id of a tree; undefined if there is none. Commits do not change. */
  tree(commit: string, path: string): string | undefined {
    const id = `${commit}:${path}`;
    const known = this.#trees.get(id);
    if (known !== undefined) return known === '' ? undefined : known;
    const found = git(this.path, ['cat-file', '--batch-check=%(objectname) %(objecttype)'], `${id}\n`);
    const oid = found.endsWith(' tree') ? found.split(' ')[0] : undefined;
    this.#trees.set(id, oid ?? '');
    return oid;
  }

  changedFiles(from: string, to: string): readonly string[] {
    const text = git(this.path, ['diff', '--name-only', '--no-renames', from, to]);
    return text === '' ? [] : text.split('\n');
  }

  /** Name and value of all refs. */
  refs(): string {
    return git(this.path, ['for-each-ref', '--format=%(refname) %(objectname)']);
  }

  /** What users see of its pull requests. */
  shown(): string {
    const { pulls, statuses } = this.repository;
    return JSON.stringify({
      pulls: pulls.map(({ number, title, body, closedAt, merged, labels, comments }) => ({
        ...{ number, title, body, closedAt, merged, labels: [...labels], comments: comments.map((one) => one.body) },
      })),
      statuses: statuses.length,
    });
  }

  /** The last state of a check of a commit. */
  check(commit: string, name = 'sluice/ready'): { readonly state: string; readonly text: string } | undefined {
    const found = this.repository.statuses.findLast((one) => one.commit === commit && one.context === name);
    return found && { state: found.state, text: found.description ?? '' };
  }

  #setBranch(branch: string, commit: string): void {
    writeRef(this.path, `refs/heads/${branch}`, commit);
    this.repository.follow();
  }

  #commit(tree: string, parents: readonly string[], message: string): string {
    // Of two pushes in one second, the commits differ.
    const person = { name: 'pusher', email: 'pusher@example.com', time: this.clock.now() };
    return writeCommit(this.path, { tree, parents, message }, person);
  }

  #treeWith(commit: string, files: Readonly<Record<string, string | null>>): string {
    const index = `${this.path}/index-of-model`;
    const run = (args: readonly string[], input = '') =>
      execFileSync('git', [`--git-dir=${this.path}`, ...args], {
        input,
        env: { ...GIT_ENVIRONMENT, GIT_INDEX_FILE: index },
      })
        .toString('utf8')
        .trim();
    run(['read-tree', commit]);
    const lines = Object.entries(files).map(([path, text]) =>
      text === null ? `0 ${'0'.repeat(40)}\t${path}` : `100644 ${writeObject(this.path, 'blob', text)}\t${path}`,
    );
    run(['update-index', '--index-info'], `${lines.join('\n')}\n`);
    return run(['write-tree']);
  }
}

function isQuery(body: unknown): boolean {
  const { query = '' } = (body ?? {}) as { query?: string };
  return !query.trimStart().startsWith('mutation');
}

function shortBody(body: unknown): string {
  return JSON.stringify(body ?? null);
}
