import { git } from '../git/git-cli.ts';
import { ISSUE_ROUTES } from './github-issue-routes.ts';
import {
  type GitHubRepository,
  Invalid,
  nextId,
  type Pull,
  type Run,
  type RunAnnotation,
  timeNow,
} from './github-repository.ts';
import { type Call, Failure, list, pageOf, REPOSITORY, type Route } from './github-route.ts';

const PULL = `${REPOSITORY}/pulls/{pull_number}`;
const REVIEW_STATES: Readonly<Record<string, string>> = {
  APPROVE: 'APPROVED',
  REQUEST_CHANGES: 'CHANGES_REQUESTED',
  COMMENT: 'COMMENTED',
};

const METHOD_NAMES: Readonly<Record<string, string>> = {
  ...{ merge: 'Merge commits', squash: 'Squash merges', rebase: 'Rebase merges' },
};

/** Of Git's own objects. */
const GIT_ROUTES: Readonly<Record<string, Route>> = {
  [`GET ${REPOSITORY}/git/matching-refs/{ref}`]: {
    needs: 'contents:read',
    handle: ({ repository, path, json }) => {
      const prefix = `refs/${path.ref}`;
      const refs = git(repository.gitDir, ['for-each-ref', '--format=%(refname) %(objectname)', 'refs/heads']);
      const found = refs.split('\n').filter((line) => line.startsWith(prefix));
      return { body: found.map((line) => json.ref(...(line.split(' ') as [string, string]))) };
    },
  },
  [`GET ${REPOSITORY}/git/trees/{tree_sha}`]: {
    needs: 'contents:read',
    handle: ({ repository, path, json }) => {
      const sha = git(repository.gitDir, ['rev-parse', '--verify', '--quiet', `${path.tree_sha}^{tree}`]);
      const entries = git(repository.gitDir, [
        'ls-tree',
        '--format=%(objectmode) %(objecttype) %(objectname) %(path)',
        sha,
      ]);
      return { body: json.tree(sha, entries === '' ? [] : entries.split('\n')) };
    },
  },
};

/** The routes of pull requests and commits, by method and the template of GitHub's description. */
export const ROUTES: Readonly<Record<string, Route>> = {
  ...GIT_ROUTES,
  ...ISSUE_ROUTES,
  [`GET ${REPOSITORY}/pulls`]: {
    needs: 'pull_requests:read',
    handle: ({ repository, query, json }) => {
      const [state, base, head] = ['state', 'base', 'head'].map((name) => query.get(name));
      const found = repository.pulls.filter(
        (pull) =>
          (state === 'all' || (pull.closedAt === undefined ? 'open' : 'closed') === (state ?? 'open')) &&
          (base === null || base === pull.base) &&
          // As on GitHub, a filter without an owner is ignored.
          (!head?.includes(':') || head === `${pull.head.repository.owner}:${pull.head.branch}`),
      );
      if (query.get('sort') === 'updated') found.sort((a, b) => (a.updatedAt < b.updatedAt ? -1 : 1));
      if (query.get('direction') === 'desc') found.reverse();
      return list(found, query, (pull) => json.pull(repository, pull, true));
    },
  },
  [`POST ${REPOSITORY}/pulls`]: {
    needs: 'pull_requests:write',
    handle: ({ repository, body, user, json, repositoryOf }) => {
      const wanted = body as { head: string; base: string; title: string; body?: string };
      const [owner] = wanted.head.includes(':') ? wanted.head.split(':') : [repository.owner];
      const head = owner === repository.owner ? repository : repositoryOf(owner ?? '');
      return { status: 201, body: json.pull(repository, repository.open(user, wanted, head)) };
    },
  },
  [`GET ${PULL}`]: {
    needs: 'pull_requests:read',
    handle: (call) => ({ body: call.json.pull(call.repository, pullOf(call)) }),
  },
  [`PATCH ${PULL}`]: {
    needs: 'pull_requests:write',
    handle: (call) => {
      const pull = pullOf(call);
      const { title, body, state, base } = call.body as {
        title?: string;
        body?: string;
        state?: 'open' | 'closed';
        base?: string;
      };
      const { repository, branch, commit } = pull.head;
      const now = state === 'open' && pull.closedAt !== undefined ? repository.head(branch) : commit;
      if (now !== commit) {
        const what = now === undefined ? 'has been deleted' : 'was force-pushed or recreated';
        const message = `state cannot be changed. The ${branch} branch ${what}.`;
        throw new Invalid({ resource: 'PullRequest', code: 'custom', field: 'state', message });
      }
      if (title !== undefined) pull.title = title;
      if (body !== undefined) pull.body = body === '' ? null : body;
      if (state !== undefined) call.repository.setState(pull, state, call.user);
      pull.updatedAt = timeNow();
      if (base !== undefined) {
        pull.base = base;
        pull.baseCommit = call.repository.head(base) ?? pull.baseCommit;
        pull.timeline.push({ type: 'BaseRefChangedEvent', actor: call.user, at: pull.updatedAt });
      }
      return { body: call.json.pull(call.repository, pull) };
    },
  },
  [`PUT ${PULL}/merge`]: {
    needs: 'contents:write',
    handle: (call) => {
      const pull = pullOf(call);
      const { repository } = call;
      const {
        sha: expected = pull.head.commit,
        merge_method: method = 'merge',
        ...texts
      } = call.body as Record<string, string>;
      if (pull.closedAt !== undefined) throw new Failure(405, 'Pull Request is not mergeable');
      if (pull.head.commit !== expected)
        throw new Failure(409, 'Head branch was modified. Review and try the merge again.');
      if (!repository.methods.includes(method))
        throw new Failure(405, `${METHOD_NAMES[method]} are not allowed on this repository.`);
      const { check, hasQueue, methods, exemptsOwner } = repository.protections.get(pull.base) ?? {};
      if (methods?.includes(method) === false)
        throw new Failure(405, `Repository rule violations found\n\n${METHOD_NAMES[method]} are not allowed.`);
      const state = repository.mergeState(pull);
      if (['dirty', 'unknown'].includes(state)) throw new Failure(405, 'Pull Request is not mergeable');
      if (state === 'behind') throw new Failure(405, 'Head branch is out of date. Review and try the merge again.');
      if (hasQueue === true)
        throw new Failure(405, 'Repository rule violations found\n\nChanges must be made through the merge queue');
      const isExempt = exemptsOwner === true && call.user === repository.owner;
      if (state === 'blocked' && !isExempt) throw new Failure(405, `Required status check "${check}" is expected.`);
      const message = { method, title: texts.commit_title, text: texts.commit_message };
      const sha = repository.merge(pull, expected, call.user, message as { method: string });
      if (sha === undefined) throw new Failure(405, 'This branch can\u2019t be rebased');
      return { body: { sha, merged: true, message: 'Pull Request successfully merged' } };
    },
  },
  [`GET ${REPOSITORY}`]: {
    needs: 'metadata:read',
    handle: ({ repository, json }) => ({ body: json.settings(repository) }),
  },
  [`GET ${REPOSITORY}/branches/{branch}`]: {
    needs: 'contents:read',
    handle: ({ repository, path, json }) => ({ body: json.branch(repository, branchOf(repository, path.branch)) }),
  },
  [`GET ${REPOSITORY}/rules/branches/{branch}`]: {
    needs: 'metadata:read',
    handle: ({ repository, path, json }) => {
      const protection = repository.protections.get(path.branch ?? '');
      return { body: protection === undefined || protection.isClassic === true ? [] : json.rules(protection) };
    },
  },
  [`GET ${PULL}/reviews`]: {
    needs: 'pull_requests:read',
    handle: (call) => {
      const pull = pullOf(call);
      return list(pull.reviews, call.query, (review) => call.json.review(call.repository, pull, review));
    },
  },
  [`POST ${PULL}/reviews`]: {
    needs: 'pull_requests:write',
    handle: (call) => {
      const pull = pullOf(call);
      const { event, body = '' } = call.body as { event: string; body?: string };
      if (call.user === pull.author && event !== 'COMMENT') throw new Invalid('Can not approve your own pull request');
      const review = {
        ...{ id: nextId(), user: call.user, state: REVIEW_STATES[event] ?? 'PENDING', body },
        ...{ commit: pull.head.commit, at: timeNow() },
      };
      pull.reviews.push(review);
      pull.requestedUsers.delete(call.user);
      pull.updatedAt = review.at;
      return { body: call.json.review(call.repository, pull, review) };
    },
  },
  [`PUT ${PULL}/reviews/{review_id}/dismissals`]: {
    needs: 'pull_requests:write',
    handle: (call) => {
      const pull = pullOf(call);
      const review = pull.reviews.find(({ id }) => String(id) === call.path.review_id);
      if (review === undefined) throw new Failure(404, 'Not Found');
      const at = timeNow();
      const dismissed = { id: review.id, was: review.state };
      pull.timeline.push({ type: 'ReviewDismissedEvent', actor: call.user, at, dismissed });
      review.state = 'DISMISSED';
      pull.updatedAt = at;
      return { body: call.json.review(call.repository, pull, review) };
    },
  },
  [`POST ${PULL}/requested_reviewers`]: {
    needs: 'pull_requests:write',
    handle: (call) => {
      const pull = pullOf(call);
      const { repository } = call;
      const { reviewers = [], team_reviewers: teams = [] } = call.body as Record<string, string[]>;
      if (reviewers.includes(pull.author))
        throw new Failure(422, 'Review cannot be requested from pull request author.');
      if (
        !reviewers.every((user) => repository.writers.has(user)) ||
        !teams.every((team) => repository.teams.has(team))
      ) {
        const message =
          'Reviews may only be requested from collaborators. One or more of the users or teams you specified is not a collaborator';
        throw new Failure(422, `${message} of the ${repository.owner}/${repository.name} repository.`);
      }
      for (const user of reviewers) pull.requestedUsers.add(user);
      for (const team of teams) pull.requestedTeams.add(team);
      pull.updatedAt = timeNow();
      return { status: 201, body: call.json.pull(repository, pull, true) };
    },
  },
  [`GET ${REPOSITORY}/collaborators/{username}/permission`]: {
    needs: 'metadata:read',
    handle: ({ repository, path, json }) => ({ body: json.permission(repository, path.username ?? '') }),
  },
  'GET /orgs/{org}/teams/{team_slug}/memberships/{username}': {
    needs: 'members:read',
    handle: ({ repository, path, json }) => {
      const state = repository.members.get(path.team_slug ?? '')?.get(path.username ?? '');
      if (state === undefined) throw new Failure(404, 'Not Found');
      return { body: json.membership(state) };
    },
  },
  [`GET ${REPOSITORY}/commits/{ref}/status`]: {
    needs: 'statuses:read',
    handle: ({ repository, path, query, json }) => {
      const commit = commitOf(repository, path.ref);
      const all = repository.statuses.filter((status) => status.commit === commit);
      const last = [...new Map(all.map((status) => [status.context, status])).values()].reverse();
      return { body: json.combinedStatus(repository, commit, pageOf(last, query), last.length), entries: last };
    },
  },
  [`POST ${REPOSITORY}/statuses/{sha}`]: {
    needs: 'statuses:write',
    handle: ({ repository, path, body, json }) => {
      const commit = commitOf(repository, path.sha);
      const { context = 'default', state, description = null, target_url: url = null } = body as Record<string, string>;
      if ((description?.length ?? 0) > 140)
        throw new Invalid({ resource: 'Status', code: 'custom', field: 'description' });
      for (const [field, text] of Object.entries({ description, context }))
        if (text !== null && /[\u{10000}-\u{10ffff}]/u.test(text)) {
          const message = `${field} doesn't accept 4-byte Unicode`;
          throw new Invalid({ resource: 'Status', code: 'custom', field, message });
        }
      const status = { id: nextId(), commit, context, state: state ?? '', description, url };
      repository.statuses.push(status);
      repository.written += 1;
      return { status: 201, body: json.status(status) };
    },
  },
  [`GET ${REPOSITORY}/commits/{ref}/check-runs`]: {
    needs: 'checks:read',
    handle: ({ repository, path, query, json }) => {
      const commit = commitOf(repository, path.ref);
      const app = query.get('app_id');
      const all = repository.runs.filter((run) => run.commit === commit && (app === null || app === String(run.app)));
      const last = [...new Map(all.map((run) => [`${run.app} ${run.name}`, run])).values()].reverse();
      const runs = pageOf(last, query).map((run) => json.run(run));
      return { body: { total_count: last.length, check_runs: runs }, entries: last };
    },
  },
  [`POST ${REPOSITORY}/check-runs`]: {
    needs: 'checks:write',
    handle: (call) => {
      const { repository, body, app, json } = call;
      const commit = commitOf(repository, body.head_sha);
      const run = changed({ id: nextId(), app: app ?? 0, commit, ...EMPTY_RUN, annotations: [] }, body);
      repository.runs.push(run);
      repository.written += 1;
      return { status: 201, body: json.run(run) };
    },
  },
  [`PATCH ${REPOSITORY}/check-runs/{check_run_id}`]: {
    needs: 'checks:write',
    handle: ({ repository, path, body, app, json }) => {
      const run = repository.runs.find(({ id }) => String(id) === path.check_run_id);
      if (run === undefined) throw new Failure(404, 'Not Found');
      if (run.app !== app) throw new Failure(403, 'Invalid app_id for this check run');
      if (run.status === 'completed' && body.status !== undefined && body.status !== 'completed')
        throw new Invalid({ resource: 'CheckRun', code: 'custom', field: 'status' });
      changed(run, body);
      repository.written += 1;
      return { body: json.run(run) };
    },
  },
};

const EMPTY_RUN = {
  ...{ name: '', externalId: '', status: 'queued', conclusion: null },
  ...{ title: '', summary: '', text: null },
};
/** Of the text of a check run, in bytes. */
const MAX_TEXT_BYTES = 65_535;
/** Of one request. */
const MAX_ANNOTATIONS = 50;

function changed(run: Run, body: Readonly<Record<string, unknown>>): Run {
  const { name, status, conclusion, ...other } = body as {
    name?: string;
    external_id?: string;
    status?: string;
    conclusion?: string;
    output?: { title: string; summary: string; text?: string; annotations?: RunAnnotation[] };
  };
  const { annotations = [], ...output }: NonNullable<typeof other.output> | { annotations?: never; text?: never } =
    other.output ?? {};
  if (annotations.length > MAX_ANNOTATIONS)
    throw new Invalid({ resource: 'CheckRun', code: 'custom', field: 'annotations' });
  if (Buffer.byteLength(output.text ?? '') > MAX_TEXT_BYTES)
    throw new Invalid({ resource: 'CheckRun', code: 'custom', field: 'text' });
  // A request adds annotations to those that the run has.
  run.annotations.push(...annotations);
  return Object.assign(run, {
    ...(name === undefined ? {} : { name }),
    ...(other.external_id === undefined ? {} : { externalId: other.external_id }),
    ...(status === undefined ? {} : { status, conclusion: null }),
    ...(conclusion === undefined ? {} : { conclusion, status: 'completed' }),
    ...output,
  });
}

function pullOf({ repository, path }: Call): Pull {
  const number = path.pull_number;
  const pull = repository.pulls.find((one) => String(one.number) === number);
  if (pull === undefined) throw new Failure(404, 'Not Found');
  return pull;
}

function branchOf(repository: GitHubRepository, branch = ''): string {
  if (repository.head(branch) === undefined) throw new Failure(404, 'Branch not found');
  return branch;
}

function commitOf(repository: GitHubRepository, commit: unknown): string {
  if (typeof commit === 'string' && repository.has(commit)) return commit;
  throw new Failure(422, `No commit found for SHA: ${String(commit)}`);
}
