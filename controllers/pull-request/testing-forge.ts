import {
  commentsAbout,
  type HostComment,
  setTopicComment,
  withoutOwner,
} from '../../src/forge/comments/topic-comment.ts';
import type {
  Check,
  Closing,
  Comment,
  Forge,
  MergedState,
  NewPullRequest,
  PullRequest,
  PullRequestChange,
  PullState,
  Review,
  ScheduledMerge,
} from '../../src/forge/forge.ts';
import type {
  BranchRules,
  Mergeability,
  MergeMethod,
  MergeOutcome,
  MergeRequest,
} from '../../src/forge/forge-merging.ts';
import { ofPresentBase } from '../../src/forge/reviews/base-changes.ts';
import { type Dismissal, withRequestsAtMerge } from '../../src/forge/reviews/dismissed-reviews.ts';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { lastReviews } from './reviews/verdicts.ts';

/** A repository on a host, in memory, with the operations of users for tests of races and failures; real hosts are in test/forge. */
export class MemoryForge implements Forge {
  opensWithLabels = true;
  batchesReads = false;
  reopensWithoutBranch = true;
  readonly pulls: PullRequest[] = [];
  readonly reviewsOf = new Map<number, Review[]>();
  /** By the number of the pull request. */
  readonly schedules = new Map<number, ScheduledMerge>();
  /** Of all merges. */
  unsureMerger: string | undefined;
  readonly closings = new Map<number, Closing>();
  readonly commentsOf = new Map<number, HostComment[]>();
  /** Whether it reports edits of comments. */
  reportsEdits = true;
  /** Texts of comments as they were written, by their ids. */
  readonly #written = new Map<string, string>();
  /** Members by team. */
  readonly teams = new Map<string, Set<string>>();
  /** Users who may write. */
  readonly writers = new Set<string>();
  /** By commit and name. */
  readonly checks = new Map<string, Map<string, Check>>();
  /** Names of the methods that were called. */
  readonly calls: string[] = [];
  readonly requested: string[] = [];
  /** Users and teams of whom it accepts no request for a review. */
  readonly strangers = new Set<string>();
  /** Called before each method; what it throws, the method rejects with. */
  before: (method: string) => void = () => undefined;
  /** Called after each method has had its effect. */
  after: (method: string) => void = () => undefined;
  /** The Git repository of the host: it knows the heads of branches, and merges. */
  host:
    | { head(branch: string): string | undefined; merge(pull: PullRequest, wanted: MergeRequest): string }
    | undefined;
  /** The head of a branch that was merged, where it has no `host`. */
  headOf: (branch: string) => string | undefined = () => undefined;
  /** What a merge returns; undefined merges. */
  outcome: MergeOutcome | undefined;
  mergeable: Mergeability = 'mergeable';
  /** Numbers of pull requests in its merge queue. */
  readonly queue = new Set<number>();
  /** Those of them that another user has put there. */
  readonly queuedByOthers = new Set<number>();
  rules: BranchRules = {};
  /** Those that it permits. */
  methods: readonly MergeMethod[] | undefined = ['merge', 'squash', 'rebase'];
  readonly #dismissals: Dismissal[] = [];
  readonly #baseChanges = new Map<number, string>();
  #second = 0;
  #comments = 0;

  listOpen(base: string): Promise<readonly PullRequest[]> {
    return this.#call('listOpen', () =>
      this.pulls.filter((pull) => pull.state === 'open' && pull.base.branch === base),
    );
  }

  listUpdated(since: string, limit: number): Promise<readonly PullRequest[]> {
    const sorted = () => this.pulls.toSorted((a, b) => (Date.parse(a.updatedAt) < Date.parse(b.updatedAt) ? 1 : -1));
    return this.#call('listUpdated', () =>
      sorted()
        .filter(({ updatedAt }) => Date.parse(updatedAt) >= Date.parse(since))
        .slice(0, limit),
    );
  }

  get(number: number): Promise<PullRequest> {
    return this.#call('get', () => this.#shown(this.#find(number)));
  }

  open({ head, base, title, body, labels = [] }: NewPullRequest): Promise<PullRequest> {
    return this.#call('open', () => {
      const isSame = (pull: PullRequest) => pull.head.branch === head && pull.base.branch === base;
      const known = this.pulls.find((pull) => pull.state === 'open' && isSame(pull));
      if (known !== undefined) return this.#shown(known);
      const number = this.pulls.length + 1;
      const at = this.#time();
      const pull: PullRequest = {
        ...{ number, title, body, author: 'sluice', labels: [...labels], state: 'open' },
        url: `https://git.example.com/owner/apps/pulls/${number}`,
        ...{ createdAt: at, updatedAt: at },
        head: { branch: head, commit: '', isSameRepository: true },
        base: { branch: base },
      };
      this.pulls.push(pull);
      return this.#shown(pull);
    });
  }

  update(number: number, { state, ...change }: PullRequestChange): Promise<PullRequest> {
    return this.#call('update', () => {
      const { closedAt: _closedAt, ...before } = this.#find(number);
      if (state === 'open' && before.state === 'closed') {
        this.pulls[number - 1] = before;
        return this.#shown(this.change(number, { ...change, state }));
      }
      const isClosed = state === 'closed' && before.state === 'open';
      return this.change(number, isClosed ? { ...change, state, closedAt: this.#time() } : change);
    });
  }

  find(head: string, base: string): Promise<PullRequest | undefined> {
    return this.#call('find', () => {
      const own = this.pulls.filter((pull) => pull.head.branch === head && pull.base.branch === base);
      return this.#shown(own.find(({ state }) => state === 'open') ?? own.at(-1));
    });
  }

  merge(number: number, wanted: MergeRequest): Promise<MergeOutcome> {
    return this.#call('merge', () => {
      const pull = this.#shown(this.#find(number));
      if (pull.head.commit !== wanted.headCommit) throw new SluiceError('Conflict', 'the head is another commit');
      if (pull.state === 'merged') return { state: 'merged', commit: pull.merged?.commit };
      if (pull.state === 'closed') return { state: 'refused', obstacle: 'closed', message: 'it was closed' };
      if (this.outcome !== undefined) return this.outcome;
      const commit = this.host?.merge(pull, wanted) ?? '';
      this.change(number, { state: 'merged', merged: { commit, by: 'sluice' }, closedAt: this.#time() });
      return { state: 'merged', commit };
    });
  }

  dequeue(number: number): Promise<'removed' | 'absent' | 'other'> {
    return this.#call('dequeue', () => {
      if (!this.queue.has(number)) return 'absent';
      if (this.queuedByOthers.has(number)) return 'other';
      this.queue.delete(number);
      this.change(number, {});
      return 'removed';
    });
  }

  mergeability(number: number): Promise<Mergeability> {
    return this.#call('mergeability', () => (this.queue.has(number) ? 'queued' : this.mergeable));
  }

  branchRules(): Promise<BranchRules> {
    return this.#call('branchRules', () => this.rules);
  }

  mergeMethods(): Promise<readonly MergeMethod[] | undefined> {
    return this.#call('mergeMethods', () => this.methods);
  }

  async state(number: number): Promise<PullState> {
    return { pull: await this.get(number), reviews: await this.reviews(number), isQueued: this.queue.has(number) };
  }

  reviews(number: number): Promise<readonly Review[]> {
    return this.#call('reviews', () => this.#lastReviewsOf(number));
  }

  mergedState({ number, closedAt }: PullRequest): Promise<MergedState> {
    const scheduled = this.schedules.get(number);
    const reviews = withRequestsAtMerge(this.#lastReviewsOf(number), this.#dismissals, closedAt);
    const { unsureMerger } = this;
    return this.#call('mergedState', () => ({
      ...{ reviews, ...(scheduled === undefined ? {} : { scheduled }) },
      ...(unsureMerger === undefined ? {} : { unsureMerger }),
    }));
  }

  closing({ number }: PullRequest): Promise<Closing | undefined> {
    return this.#call('closing', () => this.closings.get(number));
  }

  requestReviewers(
    _number: number,
    { users, teams }: { readonly users: readonly string[]; readonly teams: readonly string[] },
  ): Promise<readonly { readonly name: string; readonly reason: string }[]> {
    return this.#call('requestReviewers', () => {
      const refused = [...users, ...teams].filter((name) => this.strangers.has(name));
      this.requested.push(...[...users, ...teams].filter((name) => !refused.includes(name)));
      return refused.map((name) => ({ name, reason: 'no collaborator' }));
    });
  }

  addLabels({ number, labels }: PullRequest, wanted: readonly string[]): Promise<void> {
    return this.#call('addLabels', () => {
      const all = [...new Set([...labels, ...wanted])];
      if (all.length > labels.length) this.change(number, { labels: all });
    });
  }

  setChecks(commit: string, checks: readonly Check[]): Promise<void> {
    return this.#call('setChecks', () => {
      const known = this.checks.get(commit) ?? new Map<string, Check>();
      this.checks.set(commit, known);
      for (const check of checks) known.set(check.name, check);
    });
  }

  comments(number: number, since: string, limit: number): Promise<readonly Comment[]> {
    return this.#call('comments', () =>
      (this.commentsOf.get(number) ?? [])
        .filter(({ updatedAt }) => updatedAt >= since)
        .slice(0, limit)
        .map(withoutOwner),
    );
  }

  isAsWritten({ id, body }: Comment): Promise<boolean | undefined> {
    return this.#call('isAsWritten', () => (this.reportsEdits ? this.#written.get(id) === body : undefined));
  }

  setComment(number: number, topic: string, body: string): Promise<Comment> {
    const edit = async (id: string, text: string) => withoutOwner(this.editComment(number, id, text));
    const comments = {
      read: async () => this.commentsOf.get(number) ?? [],
      create: async (text: string) => withoutOwner(this.#comment(number, 'sluice', text, true)),
      change: edit,
      remove: async (id: string) => {
        const known = this.commentsOf.get(number) ?? [];
        this.commentsOf.set(
          number,
          known.filter((one) => one.id !== id),
        );
      },
    };
    return this.#callAsync('setComment', () => setTopicComment(comments, topic, body));
  }

  findComment(number: number, topic: string): Promise<Comment | undefined> {
    return this.#call('findComment', () => {
      const [found] = commentsAbout(this.commentsOf.get(number) ?? [], topic);
      return found === undefined ? undefined : withoutOwner(found);
    });
  }

  isTeamMember(team: string, user: string): Promise<boolean> {
    return this.#call('isTeamMember', () => this.teams.get(team)?.has(user.toLowerCase()) === true);
  }

  mayWrite(user: string): Promise<boolean> {
    return this.#call('mayWrite', () => this.writers.has(user));
  }

  async close(): Promise<void> {
    this.calls.push('close');
  }

  /** Changes a pull request as a user of the host does. */
  change(number: number, change: Partial<PullRequest>): PullRequest {
    const before = this.#find(number);
    const next = { ...before, ...change, updatedAt: this.#time() };
    if (next.base.branch !== before.base.branch) this.#baseChanges.set(number, next.updatedAt);
    this.pulls[number - 1] = next;
    return next;
  }

  /** Submits a review as a user of the host does; or changes the last one of this user. */
  review(number: number, author: string, state: Review['state'], commit: string): void {
    const reviews = this.reviewsOf.get(number) ?? [];
    const id = `${reviews.length + 1}`;
    const url = `https://git.example.com/owner/apps/pulls/${number}#review-${id}`;
    const { updatedAt } = this.change(number, {});
    this.reviewsOf.set(number, [...reviews, { id, author, state, commit, url, submittedAt: updatedAt }]);
  }

  /** Dismisses a review as a user of the host does. */
  dismiss(number: number, id: string): void {
    const { updatedAt: at } = this.change(number, {});
    const reviews = this.reviewsOf.get(number) ?? [];
    const wasRequest = reviews.some((one) => one.id === id && one.state === 'changes-requested');
    this.#dismissals.push({ review: id, at, wasRequest });
    this.reviewsOf.set(
      number,
      reviews.map((one) => (one.id === id ? { ...one, state: 'dismissed' } : one)),
    );
  }

  /** Writes a comment as a user of the host does. Returns its id. */
  comment(number: number, author: string, body: string): string {
    return this.#comment(number, author, body, false).id;
  }

  /** Changes the text of a comment, as its author does, and each user who may write. */
  editComment(number: number, id: string, body: string): HostComment {
    const known = this.commentsOf.get(number) ?? [];
    const before = known.find((one) => one.id === id);
    if (before === undefined) throw new SluiceError('NotFound', `there is no comment ${id}`);
    const after = { ...before, body, updatedAt: this.change(number, {}).updatedAt };
    this.commentsOf.set(
      number,
      known.map((one) => (one === before ? after : one)),
    );
    return after;
  }

  #comment(number: number, author: string, body: string, isOwn: boolean): HostComment {
    const known = this.commentsOf.get(number) ?? [];
    this.#comments += 1;
    const { updatedAt: at, url } = this.change(number, {});
    const id = `${this.#comments}`;
    const comment = { id, author, body, isOwn, url: `${url}#comment-${id}`, createdAt: at, updatedAt: at };
    this.#written.set(id, body);
    this.commentsOf.set(number, [...known, comment]);
    return comment;
  }

  /** Sets its clock forward. */
  skip(seconds: number): void {
    this.#second += seconds;
  }

  /** The states of the checks of a commit, by name. */
  checksOf(commit: string): Record<string, string> {
    return Object.fromEntries([...(this.checks.get(commit) ?? [])].map(([name, { state }]) => [name, state]));
  }

  #find(number: number): PullRequest {
    const found = this.pulls[number - 1];
    if (found === undefined) throw new SluiceError('NotFound', `there is no pull request ${number}`);
    return found;
  }

  /** With the present head of its branch while it is open. */
  #shown<Pull extends PullRequest | undefined>(pull: Pull): Pull {
    if (pull?.state === 'merged' && pull.head.commit === '')
      return { ...pull, head: { ...pull.head, commit: this.headOf(pull.head.branch) ?? '' } };
    if (pull === undefined || pull.state !== 'open') return pull;
    const { unsureMerger } = this;
    if (pull.base.unsureMerger !== unsureMerger && unsureMerger !== undefined)
      return this.#shown(this.change(pull.number, { base: { ...pull.base, unsureMerger } }) as Pull);
    const commit = this.host?.head(pull.head.branch);
    if (commit === undefined || commit === pull.head.commit) return pull;
    return this.change(pull.number, { head: { ...pull.head, commit } }) as Pull;
  }

  /** As the hosts return them: the last one of each author. */
  #lastReviewsOf(number: number): readonly Review[] {
    return ofPresentBase(lastReviews(this.reviewsOf.get(number) ?? []), this.#baseChanges.get(number));
  }

  #call<Result>(method: string, work: () => Result): Promise<Result> {
    return this.#callAsync(method, async () => work());
  }

  async #callAsync<Result>(method: string, work: () => Promise<Result>): Promise<Result> {
    this.calls.push(method);
    this.before(method);
    const result = await work();
    this.after(method);
    return result;
  }

  /** A later time for each change. */
  #time(): string {
    this.#second += 1;
    return new Date(Date.UTC(2030, 0, 1) + this.#second * 1000).toISOString();
  }
}
