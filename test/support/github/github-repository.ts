import { join } from 'node:path';
import { type Clock, systemClock } from '../../../src/foundation/time/clock.ts';
import { git, initBare, readRef } from '../git/git-cli.ts';
import { rebasedCommit } from '../git/rebased-commit.ts';
import { writeCommit, writeObject, writeRef, writeTree } from '../git/write-objects.ts';
import { type Files, filesIn, mergedTree } from './github-trees.ts';

/** What pull requests and issues have in common. */
export interface Thread {
  readonly number: number;
  title: string;
  body: string | null;
  readonly author: string;
  readonly createdAt: string;
  updatedAt: string;
  closedAt?: string;
  readonly labels: Set<string>;
  readonly comments: {
    readonly id: number;
    readonly user: string;
    readonly app: number | undefined;
    body: string;
    readonly at: string;
    updatedAt: string;
    lastEditedAt?: string;
  }[];
  readonly events: { readonly id: number; readonly event: string; readonly actor: string; readonly at: string }[];
}

export interface Issue extends Thread {
  readonly app: number | undefined;
  reason: string | null;
  readonly assignees: Set<string>;
}

export interface Pull extends Thread {
  readonly head: { readonly repository: GitHubRepository; readonly branch: string; commit: string };
  base: string;
  /** The head of its base when that became its base, which GitHub goes on to report: see https://github.com/github/docs/issues/431. */
  baseCommit: string;
  /** Who has enabled auto-merge. */
  autoMerge?: string;
  /** Events that only GraphQL has, by the name of their type. */
  readonly timeline: {
    readonly type: string;
    readonly actor: string;
    readonly at: string;
    /** Of an event of that kind: the review, and its state before. */
    readonly dismissed?: { readonly id: number; readonly was: string };
  }[];
  merged?: { readonly commit: string; readonly by: string; readonly at: string; readonly base: string };
  readonly requestedUsers: Set<string>;
  readonly requestedTeams: Set<string>;
  readonly reviews: {
    readonly id: number;
    readonly user: string;
    state: string;
    readonly body: string;
    readonly commit: string;
    readonly at: string;
  }[];
}

/** A rule for a branch. */
export interface Protection {
  /** A check that has to succeed on the head. */
  readonly check?: string;
  readonly isStrict?: boolean;
  readonly hasQueue?: boolean;
  /** The classic protection of a branch, whose rules are open to administrators only. Default: a ruleset. */
  readonly isClassic?: boolean;
  /** Methods that it permits. Default: all. */
  readonly methods?: readonly string[];
  /** Its owner may merge in spite of it, as an administrator on the bypass list of a ruleset. */
  readonly exemptsOwner?: boolean;
}

export interface Run {
  readonly id: number;
  readonly app: number;
  readonly commit: string;
  name: string;
  status: string;
  conclusion: string | null;
  externalId: string;
  title: string;
  summary: string;
  text: string | null;
  readonly annotations: RunAnnotation[];
}

export interface RunAnnotation {
  readonly path: string;
  readonly start_line: number;
  readonly end_line: number;
  readonly annotation_level: 'failure' | 'warning' | 'notice';
  readonly title?: string;
  readonly message: string;
}

export interface Status {
  readonly id: number;
  readonly commit: string;
  readonly context: string;
  readonly state: string;
  readonly description: string | null;
  readonly url: string | null;
}

let lastId = 1000;

export function nextId(): number {
  lastId += 1;
  return lastId;
}

let clock: Pick<Clock, 'now'> = systemClock;

/** The clock of all servers of this process. */
export function setHostClock(other: Pick<Clock, 'now'>): void {
  clock = other;
}

/** As GitHub writes times. */
export function timeNow(): string {
  return new Date(clock.now()).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** A request that a rule of GitHub refuses: the reasons in `errors`. */
export class Invalid extends Error {
  readonly errors: readonly (object | string)[];

  constructor(...errors: readonly (object | string)[]) {
    super('Validation Failed');
    this.errors = errors;
  }
}

/** The state of one repository; its refs are those of a bare repository of Git. */
export class GitHubRepository {
  readonly id = nextId();
  readonly owner: string;
  /** Owners may change it. */
  name: string;
  readonly gitDir: string;
  /** Users who may write. */
  readonly writers: Set<string>;
  readonly teams = new Set<string>();
  /** States of the memberships, by team of its owner and user. */
  readonly members = new Map<string, Map<string, 'active' | 'pending'>>();
  readonly pulls: Pull[] = [];
  readonly issues: Issue[] = [];
  readonly labels = new Map<string, string>();
  readonly runs: Run[] = [];
  readonly statuses: Status[] = [];
  /** By branch. */
  readonly protections = new Map<string, Protection>();
  /** Methods that it permits. */
  methods: readonly string[] = ['merge', 'squash', 'rebase'];
  /** Whether it states them, which GitHub does to users who may push. */
  statesMethods = true;
  /** GitHub has not found out what can be merged. */
  isComputing = false;
  /** Numbers of pull requests in the merge queue. */
  readonly queue = new Set<number>();
  /** The commits that the queue has made for them; none yet for the others. */
  readonly queueCommits = new Map<number, string>();
  /** Users who have put pull requests there; default: the account of the request. */
  readonly queuedBy = new Map<number, string>();
  /** Login of the account of requests of GraphQL. */
  viewer = 'sluice-app[bot]';
  /** Milliseconds in which pushes are not looked for again: with hundreds of open pull requests that takes most of the time of the server. */
  followMs = 0;
  #followedAt = Number.NEGATIVE_INFINITY;
  /** How many checks were written. */
  written = 0;
  #files = 0;
  /** What `commit` has written: each look at it would be a process. */
  readonly #made = new Map<string, { readonly parent: string | undefined; readonly files: Files }>();
  /** Commits that were found once. */
  readonly #commits = new Set<string>();
  /** The merged tree of two commits. */
  readonly #merged = new Map<string, string | undefined>();

  constructor(folder: string, owner: string, name: string, writers: readonly string[]) {
    this.owner = owner;
    this.name = name;
    this.writers = new Set(writers);
    this.gitDir = initBare(join(folder, `${owner}-${name}.git`));
  }

  /** A repository of a user with the same commits. */
  fork(folder: string, user: string): GitHubRepository {
    const fork = new GitHubRepository(folder, user, this.name, [user]);
    git(fork.gitDir, ['fetch', '--quiet', this.gitDir, 'refs/heads/*:refs/heads/*']);
    return fork;
  }

  head(branch: string): string | undefined {
    return readRef(this.gitDir, `refs/heads/${branch}`);
  }

  has(commit: string): boolean {
    if (this.#made.has(commit) || this.#commits.has(commit)) return true;
    const isPresent = git(this.gitDir, ['cat-file', '--batch-check=%(objecttype)'], `${commit}\n`) === 'commit';
    if (isPresent) this.#commits.add(commit);
    return isPresent;
  }

  /** Whether the head of a pull request is a commit, or has it among its ancestors. */
  contains({ head }: Pull, commit: string): boolean {
    return git(this.gitDir, ['rev-list', '--count', `${head.commit}..${commit}`]) === '0';
  }

  /** Writes a file to a branch, which begins at `main`. Default: a new one. */
  commit(branch: string, file?: string): string {
    this.#files += 1;
    const { gitDir } = this;
    const name = file ?? `file-${this.#files}-${this.id}`;
    const parent = this.head(branch) ?? this.head('main');
    const files = new Map(parent === undefined ? [] : (this.#made.get(parent)?.files ?? filesIn(gitDir, parent)));
    files.set(name, { mode: '100644', oid: writeObject(gitDir, 'blob', `${branch} ${this.#files}`) });
    const parents = parent === undefined ? [] : [parent];
    const tree = writeTree(gitDir, files);
    const commit = writeCommit(gitDir, { tree, parents, message: `file ${this.#files}\n` });
    this.#made.set(commit, { parent, files });
    this.branch(branch, commit);
    return commit;
  }

  branch(name: string, commit: string): void {
    writeRef(this.gitDir, `refs/heads/${name}`, commit);
  }

  deleteBranch(name: string): void {
    git(this.gitDir, ['update-ref', '-d', `refs/heads/${name}`]);
  }

  /** Follows pushes, as GitHub does: open pull requests have the head of their branch, and end with it. */
  follow(): void {
    if (performance.now() - this.#followedAt < this.followMs) return;
    for (const pull of this.pulls) {
      if (pull.closedAt !== undefined) continue;
      const { repository, branch, commit } = pull.head;
      const now = repository.head(branch);
      if (now === undefined) this.setState(pull, 'closed', this.owner);
      else if (now !== commit) {
        pull.head.commit = now;
        pull.updatedAt = timeNow();
      }
      if (pull.closedAt !== undefined || pull.autoMerge === undefined || this.mergeState(pull) !== 'clean') continue;
      this.merge(pull, pull.head.commit, pull.autoMerge);
    }
    this.#followedAt = performance.now();
  }

  open(
    author: string,
    wanted: { readonly head: string; readonly base: string; readonly title: string; readonly body?: string },
    head: GitHubRepository | undefined,
  ): Pull {
    const branch = wanted.head.split(':').at(-1) ?? '';
    const commit = head?.head(branch);
    const resource = 'PullRequest';
    if (head === undefined || commit === undefined) throw new Invalid({ resource, field: 'head', code: 'invalid' });
    const base = this.head(wanted.base);
    if (base === undefined) throw new Invalid({ resource, field: 'base', code: 'invalid' });
    if (wanted.title.length > 256)
      throw new Invalid({
        resource,
        code: 'custom',
        field: 'title',
        message: 'title is too long (maximum is 256 characters)',
      });
    const isOpen = (pull: Pull) =>
      pull.closedAt === undefined &&
      pull.head.repository === head &&
      pull.head.branch === branch &&
      pull.base === wanted.base;
    if (this.pulls.some(isOpen)) {
      const message = `A pull request already exists for ${head.owner}:${branch}.`;
      throw new Invalid({ resource, code: 'custom', message });
    }
    if (head !== this) git(this.gitDir, ['fetch', '--quiet', head.gitDir, commit]);
    const hasCommits = this.#made.get(commit)?.parent === base;
    if (!hasCommits && git(this.gitDir, ['rev-list', '--count', `${base}..${commit}`]) === '0')
      throw new Invalid({ resource, code: 'custom', message: `No commits between ${wanted.base} and ${wanted.head}` });
    const now = timeNow();
    const pull: Pull = {
      ...{ number: this.#nextNumber(), title: wanted.title, body: wanted.body ?? null, author },
      ...{ head: { repository: head, branch, commit }, base: wanted.base, baseCommit: base },
      ...{ createdAt: now, updatedAt: now },
      ...{ labels: new Set<string>(), requestedUsers: new Set<string>(), requestedTeams: new Set<string>() },
      ...{ reviews: [], comments: [], events: [], timeline: [] },
    };
    this.pulls.push(pull);
    return pull;
  }

  openIssue(author: string, app: number | undefined, { title, body }: { title: string; body?: string }): Issue {
    const now = timeNow();
    const issue: Issue = {
      ...{ number: this.#nextNumber(), title, body: body ?? null, author, app, createdAt: now, updatedAt: now },
      ...{ labels: new Set<string>(), assignees: new Set<string>(), reason: null, comments: [], events: [] },
    };
    this.issues.push(issue);
    return issue;
  }

  /** One sequence for both. */
  #nextNumber(): number {
    return this.pulls.length + this.issues.length + 1;
  }

  setState(pull: Thread, state: 'open' | 'closed', actor: string): void {
    if ((pull.closedAt === undefined) === (state === 'open')) return;
    const at = timeNow();
    if (state === 'closed') pull.closedAt = at;
    else delete pull.closedAt;
    pull.events.push({ id: nextId(), event: state === 'closed' ? 'closed' : 'reopened', actor, at });
    pull.updatedAt = at;
  }

  /** `mergeable_state` of an open pull request. */
  mergeState(pull: Pull): string {
    if (this.isComputing || pull.closedAt !== undefined) return 'unknown';
    const base = this.head(pull.base) ?? '';
    if (this.#mergedTree(base, pull.head.commit) === undefined) return 'dirty';
    const { check, isStrict = false } = this.protections.get(pull.base) ?? {};
    const isBehind = () => git(this.gitDir, ['rev-list', '--count', `${pull.head.commit}..${base}`]) !== '0';
    if (isStrict && isBehind()) return 'behind';
    return check === undefined || this.#succeeded(check, pull.head.commit) ? 'clean' : 'blocked';
  }

  /** GitHub merges it in the name of this user once the rules of its base permit that, whatever its head is then. */
  setAutoMerge(pull: Pull, user: string, isEnabled = true): void {
    if (isEnabled) pull.autoMerge = user;
    else delete pull.autoMerge;
    const type = isEnabled ? 'AutoMergeEnabledEvent' : 'AutoMergeDisabledEvent';
    pull.updatedAt = timeNow();
    pull.timeline.push({ type, actor: user, at: pull.updatedAt });
  }

  /** Puts it into the merge queue of its base: a branch with the commit that would be merged, of which the queue waits for checks. */
  enqueue(pull: Pull): string {
    const base = this.head(pull.base) ?? '';
    const tree = git(this.gitDir, ['merge-tree', '--write-tree', base, pull.head.commit]);
    const parents = [base, pull.head.commit];
    const commit = writeCommit(this.gitDir, { tree, parents, message: `#${pull.number}\n` });
    this.branch(`gh-readonly-queue/${pull.base}/pr-${pull.number}-${base}`, commit);
    this.queue.add(pull.number);
    this.queueCommits.set(pull.number, commit);
    pull.updatedAt = timeNow();
    return commit;
  }

  /** Merges it, if the head is as expected and its commits can be rebased, where that is the method; returns the commit. */
  merge(
    pull: Pull,
    expected: string,
    by: string,
    { method = 'merge', title = `Merge #${pull.number}`, text = '' } = {},
  ) {
    if (pull.head.commit !== expected) return undefined;
    const base = this.head(pull.base) ?? '';
    const tree = this.#mergedTree(base, expected) ?? '';
    const message = text === '' ? title : `${title}\n\n${text}`;
    const parents = method === 'squash' ? [base] : [base, expected];
    const commit =
      method === 'rebase'
        ? rebasedCommit(this.gitDir, base, expected)
        : writeCommit(this.gitDir, { tree, parents, message: `${message}\n` });
    if (commit === undefined) return undefined;
    git(this.gitDir, ['update-ref', `refs/heads/${pull.base}`, commit, base]);
    pull.merged = { commit, by, base, at: timeNow() };
    pull.events.push({ id: nextId(), event: 'merged', actor: by, at: pull.merged.at });
    this.queue.delete(pull.number);
    this.setState(pull, 'closed', by);
    return commit;
  }

  /** Undefined if there is a conflict. */
  #mergedTree(base: string, head: string): string | undefined {
    const key = `${base} ${head}`;
    if (!this.#merged.has(key)) this.#merged.set(key, mergedTree(this.gitDir, base, head));
    return this.#merged.get(key);
  }

  #succeeded(check: string, commit: string): boolean {
    const run = this.runs.findLast((one) => one.commit === commit && one.name === check);
    const status = this.statuses.findLast((one) => one.commit === commit && one.context === check);
    return run?.conclusion === 'success' || status?.state === 'success';
  }
}
