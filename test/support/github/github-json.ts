import type { GitHubRepository, Issue, Protection, Pull, Run, Status, Thread } from './github-repository.ts';
import type { OpenApi } from './openapi.ts';

type Json = Record<string, unknown>;

/** The JSON of GitHub's responses: the published examples, with the state of the test in them. */
export class GitHubJson {
  readonly #api: OpenApi;
  readonly #url: string;
  readonly #pull: Json;
  readonly #listed: Json;

  /** `url` is the address of the server. */
  constructor(api: OpenApi, url: string) {
    this.#api = api;
    this.#url = url;
    this.#pull = api.example('pull-request') as Json;
    this.#listed = (api.example('pull-request-simple-items') as Json[])[0] ?? {};
  }

  user(login: string): Json {
    return { ...(this.#pull.user as Json), login, type: login.endsWith('[bot]') ? 'Bot' : 'User' };
  }

  repository(repository: GitHubRepository): Json {
    const { repo } = this.#pull.head as { repo: Json };
    const { id, owner, name } = repository;
    return { ...repo, id, name, full_name: `${owner}/${name}`, owner: this.user(owner), private: true };
  }

  /** With the settings that users who may push see. */
  settings({ owner, name, id, methods, statesMethods }: GitHubRepository): Json {
    const example = this.#api.example('full-repository-default-response') as Json;
    // Those of a fork are in the example, and not as described.
    const { allow_merge_commit: _, allow_squash_merge: __, allow_rebase_merge: ___, ...others } = example;
    for (const fork of ['source', 'parent']) delete others[fork];
    const stated = {
      ...{ allow_merge_commit: methods.includes('merge'), allow_squash_merge: methods.includes('squash') },
      allow_rebase_merge: methods.includes('rebase'),
    };
    return { ...others, language: null, id, name, full_name: `${owner}/${name}`, ...(statesMethods ? stated : {}) };
  }

  label(name: string, color: string): Json {
    return { ...(this.#api.example('label') as Json), name, color, description: null };
  }

  ref(ref: string, sha: string): Json {
    const url = `${this.#url}/git/${ref}`;
    return { ref, node_id: 'MDM6UmVm', url, object: { type: 'commit', sha, url } };
  }

  /** Entries as `ls-tree` prints them. */
  tree(sha: string, entries: readonly string[]): Json {
    const url = `${this.#url}/git/trees/${sha}`;
    const tree = entries.map((line) => {
      const [mode, type, id, ...path] = line.split(' ');
      return { path: path.join(' '), mode, type, sha: id, url };
    });
    return { sha, url, tree, truncated: false };
  }

  /** In lists, there is less of it. */
  pull(repository: GitHubRepository, pull: Pull, isListed = false): Json {
    const { head, merged } = pull;
    const ref = (of: GitHubRepository, branch: string, commit: string) => ({
      ...{ label: `${of.owner}:${branch}`, ref: branch, sha: commit },
      ...{ user: this.user(of.owner), repo: this.repository(of) },
    });
    const own = {
      ...{ number: pull.number, title: pull.title, body: pull.body, user: this.user(pull.author) },
      html_url: `${this.#url}/${repository.owner}/${repository.name}/pull/${pull.number}`,
      state: pull.closedAt === undefined ? 'open' : 'closed',
      ...{ created_at: pull.createdAt, updated_at: pull.updatedAt },
      ...{ closed_at: pull.closedAt ?? null, merged_at: merged?.at ?? null, merge_commit_sha: merged?.commit ?? null },
      ...{ assignee: null, assignees: [], milestone: null, auto_merge: null, requested_teams: [] },
      requested_reviewers: [...pull.requestedUsers].map((login) => this.user(login)),
      labels: [...pull.labels].map((name) => this.label(name, repository.labels.get(name) ?? 'ededed')),
      head: ref(head.repository, head.branch, head.commit),
      base: ref(repository, pull.base, pull.baseCommit),
    };
    // The labels of lists have texts always.
    if (isListed) return { ...this.#listed, ...own, labels: own.labels.map((one) => ({ ...one, description: '' })) };
    const isMerged = merged !== undefined;
    const state = repository.mergeState(pull);
    const mergeable = state === 'unknown' ? null : state !== 'dirty';
    const more = { node_id: `PR_${repository.id}_${pull.number}`, mergeable, mergeable_state: state };
    return { ...this.#pull, ...own, ...more, merged: isMerged, merged_by: isMerged ? this.user(merged.by) : null };
  }

  review(repository: GitHubRepository, pull: Pull, review: Pull['reviews'][number]): Json {
    const { id, user, state, body, commit, at } = review;
    const url = `${this.#url}/${repository.owner}/${repository.name}/pull/${pull.number}#pullrequestreview-${id}`;
    return {
      ...(this.#api.example('pull-request-review') as Json),
      ...{ id, user: this.user(user), state, body, html_url: url, commit_id: commit, submitted_at: at },
    };
  }

  event({ id, event, actor, at }: Pull['events'][number]): Json {
    const [{ label: _label, ...example } = {}] = this.#api.example('issue-event-for-issue-items') as Json[];
    return { ...example, id, event, actor: this.user(actor), created_at: at, performed_via_github_app: null };
  }

  comment(repository: GitHubRepository, thread: Thread, comment: Thread['comments'][number]): Json {
    const { id, user, app, body, at, updatedAt } = comment;
    const [example] = this.#api.example('issue-comment-items') as Json[];
    return {
      ...{ ...example, id, user: this.user(user), body, created_at: at, updated_at: updatedAt },
      ...{ html_url: `${this.#pageOf(repository, thread)}#issuecomment-${id}`, node_id: `IC_${id}` },
      author_association: repository.writers.has(user) ? 'COLLABORATOR' : 'NONE',
      performed_via_github_app: this.#app(app),
    };
  }

  /** Also of a pull request, which is an issue too. */
  issue(repository: GitHubRepository, thread: Thread | Issue): Json {
    const { pull_request: pull, closed_by: _, ...example } = this.#api.example('issue') as Json;
    const { app, reason, assignees } = 'assignees' in thread ? thread : { app: undefined, reason: null, assignees: [] };
    const users = [...assignees].map((login) => this.user(login));
    return {
      ...{ ...example, number: thread.number, title: thread.title, body: thread.body, user: this.user(thread.author) },
      html_url: this.#pageOf(repository, thread),
      ...{ state: thread.closedAt === undefined ? 'open' : 'closed', state_reason: reason },
      ...{ created_at: thread.createdAt, updated_at: thread.updatedAt, closed_at: thread.closedAt ?? null },
      ...{ assignee: users[0] ?? null, assignees: users, milestone: null, comments: thread.comments.length },
      labels: [...thread.labels].map((name) => this.label(name, repository.labels.get(name) ?? 'ededed')),
      performed_via_github_app: this.#app(app),
      ...('assignees' in thread ? {} : { pull_request: pull }),
    };
  }

  #pageOf({ owner, name }: GitHubRepository, thread: Thread): string {
    const kind = 'assignees' in thread ? 'issues' : 'pull';
    return `${this.#url}/${owner}/${name}/${kind}/${thread.number}`;
  }

  #app(id: number | undefined): Json | null {
    const run = this.#api.example('check-run-example-of-completed-conclusion') as { app: Json };
    return id === undefined ? null : { ...run.app, id };
  }

  ownUser(login: string): Json {
    return { ...(this.#api.example('private-user-response-with-public-profile-information') as Json), login };
  }

  membership(state: 'active' | 'pending'): Json {
    return {
      ...(this.#api.example('team-membership-response-if-user-is-a-team-maintainer') as Json),
      role: 'member',
      state,
    };
  }

  permission({ owner, writers }: GitHubRepository, login: string): Json {
    const permission = login === owner ? 'admin' : writers.has(login) ? 'write' : 'none';
    const example = this.#api.example('repository-collaborator-permission-response-if-user-has-admin-permissions');
    const { user } = example as { user: Json };
    return { permission, role_name: permission, user: { ...user, login, role_name: permission } };
  }

  run({ id, app, commit, name, externalId, status, conclusion, title, summary, text, annotations }: Run): Json {
    const example = this.#api.example('check-run-example-of-completed-conclusion') as Json;
    return {
      ...{ ...example, id, name, head_sha: commit, external_id: externalId, status, conclusion, pull_requests: [] },
      app: { ...(example.app as Json), id: app },
      output: { ...(example.output as Json), title, summary, text, annotations_count: annotations.length },
      completed_at: status === 'completed' ? example.completed_at : null,
    };
  }

  status({ id, context, state, description, url }: Status, isListed = false): Json {
    const { statuses } = this.#api.example('combined-commit-status') as { statuses: Json[] };
    const example = isListed ? statuses[0] : (this.#api.example('status') as Json);
    return { ...example, id, context, state, description, target_url: url };
  }

  combinedStatus(repository: GitHubRepository, commit: string, page: readonly Status[], total: number): Json {
    const example = this.#api.example('combined-commit-status') as Json;
    const statuses = page.map((status) => this.status(status, true));
    return { ...example, sha: commit, statuses, total_count: total, repository: this.repository(repository) };
  }

  branch(repository: GitHubRepository, name: string): Json {
    const { commit, protection, ...example } = this.#api.example('branch-get') as Json & {
      commit: Json;
      protection: Json;
    };
    const sha = repository.head(name) ?? '';
    const rules = repository.protections.get(name);
    return {
      ...{ ...example, name, commit: { ...commit, sha }, protected: rules !== undefined },
      protection: { ...protection, enabled: rules?.isClassic === true },
    };
  }

  /** The rules of rulesets, as GitHub names them. */
  rules({ check, isStrict = false, hasQueue = false, methods }: Protection): Json[] {
    const ruleset = { ruleset_source_type: 'Repository', ruleset_source: 'acme/packages', ruleset_id: 42 };
    const reviews = {
      ...{ dismiss_stale_reviews_on_push: false, require_code_owner_review: false, require_last_push_approval: false },
      ...{ required_approving_review_count: 0, required_review_thread_resolution: false },
      ...(methods === undefined ? {} : { allowed_merge_methods: [...methods] }),
    };
    const checks = {
      strict_required_status_checks_policy: isStrict,
      required_status_checks: check === undefined ? [] : [{ context: check }],
    };
    const queue = {
      ...{ check_response_timeout_minutes: 60, grouping_strategy: 'ALLGREEN', max_entries_to_build: 5 },
      ...{ max_entries_to_merge: 5, merge_method: 'SQUASH', min_entries_to_merge: 1 },
      min_entries_to_merge_wait_minutes: 5,
    };
    return [
      { type: 'pull_request', parameters: reviews, ...ruleset },
      { type: 'required_status_checks', parameters: checks, ...ruleset },
      ...(hasQueue ? [{ type: 'merge_queue', parameters: queue, ...ruleset }] : []),
    ];
  }

  installation(id: number, app: number): Json {
    return { ...(this.#api.example('installation') as Json), id, app_id: app };
  }

  installationToken(token: string, until: string, permissions: Json, repository: GitHubRepository): Json {
    const example = this.#api.example('installation-token') as Json;
    return { ...example, token, expires_at: until, permissions, repositories: [this.repository(repository)] };
  }
}
