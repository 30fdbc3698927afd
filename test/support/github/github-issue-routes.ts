import { type GitHubRepository, Invalid, type Issue, nextId, type Thread, timeNow } from './github-repository.ts';
import { type Call, Failure, list, REPOSITORY, type Route } from './github-route.ts';

const ISSUES = `${REPOSITORY}/issues`;
const ISSUE = `${ISSUES}/{issue_number}`;
const COMMENT = `${ISSUES}/comments/{comment_id}`;
const MAX_COMMENT_CHARACTERS = 65_536;
const MAX_ASSIGNEES = 10;

/** The routes of issues, and of what pull requests have as issues. */
export const ISSUE_ROUTES: Readonly<Record<string, Route>> = {
  [`GET ${ISSUES}`]: {
    needs: 'issues:read',
    handle: ({ repository, query, json }) => {
      const since = Date.parse(query.get('since') ?? '1970-01-01T00:00:00Z');
      const [state, creator] = ['state', 'creator'].map((name) => query.get(name));
      const order = query.get('sort') === 'updated' ? 'updatedAt' : 'createdAt';
      const found = threadsOf(repository).filter(
        (thread) =>
          (state === 'all' || (thread.closedAt === undefined ? 'open' : 'closed') === (state ?? 'open')) &&
          (creator === null || creator === thread.author) &&
          Date.parse(thread.updatedAt) >= since,
      );
      found.sort((a, b) => a[order].localeCompare(b[order]) || a.number - b.number);
      if (query.get('direction') !== 'asc') found.reverse();
      return list(found, query, (thread) => json.issue(repository, thread));
    },
  },
  [`POST ${ISSUES}`]: {
    needs: 'issues:write',
    handle: ({ repository, body, user, app, json }) => {
      const issue = repository.openIssue(user, app, { ...body, title: titleOf(body.title) });
      return { status: 201, body: json.issue(repository, issue) };
    },
  },
  [`GET ${ISSUE}`]: {
    needs: threadNeeds('read'),
    handle: (call) => ({ body: call.json.issue(call.repository, threadOf(call)) }),
  },
  [`PATCH ${ISSUE}`]: {
    needs: threadNeeds('write'),
    handle: (call) => {
      const issue = issueOf(call);
      const { title, body, state, state_reason: reason } = call.body as Record<string, string | undefined>;
      if (title !== undefined) issue.title = titleOf(title);
      if (body !== undefined) issue.body = body === '' ? null : body;
      const isOpen = issue.closedAt === undefined;
      if (state !== undefined && (state === 'open') !== isOpen) {
        call.repository.setState(issue, state === 'open' ? 'open' : 'closed', call.user);
        issue.reason = state === 'open' ? 'reopened' : (reason ?? 'completed');
      }
      issue.updatedAt = timeNow();
      return { body: call.json.issue(call.repository, issue) };
    },
  },
  [`POST ${ISSUE}/assignees`]: {
    needs: threadNeeds('write'),
    handle: (call) => {
      const issue = issueOf(call);
      // GitHub ignores the others.
      for (const user of (call.body.assignees ?? []) as string[])
        if (call.repository.writers.has(user) && issue.assignees.size < MAX_ASSIGNEES) issue.assignees.add(user);
      issue.updatedAt = timeNow();
      return { status: 201, body: call.json.issue(call.repository, issue) };
    },
  },
  [`GET ${ISSUE}/events`]: {
    needs: threadNeeds('read'),
    handle: (call) => list(threadOf(call).events, call.query, (event) => call.json.event(event)),
  },
  [`GET ${ISSUE}/comments`]: {
    needs: threadNeeds('read'),
    handle: (call) => {
      const since = Date.parse(call.query.get('since') ?? '1970-01-01T00:00:00Z');
      const comments = threadOf(call).comments.filter(({ updatedAt }) => Date.parse(updatedAt) >= since);
      return list(comments, call.query, (comment) => call.json.comment(call.repository, threadOf(call), comment));
    },
  },
  [`POST ${ISSUE}/comments`]: {
    needs: threadNeeds('write'),
    handle: (call) => {
      const thread = threadOf(call);
      const at = timeNow();
      const { user, app } = call;
      const comment = { id: nextId(), user, app, body: bodyOf(call), at, updatedAt: at };
      thread.comments.push(comment);
      thread.updatedAt = comment.at;
      return { status: 201, body: call.json.comment(call.repository, thread, comment) };
    },
  },
  [`PATCH ${COMMENT}`]: {
    needs: threadNeeds('write'),
    handle: (call) => {
      const { thread, comment } = commentOf(call);
      comment.body = bodyOf(call);
      comment.updatedAt = timeNow();
      comment.lastEditedAt = comment.updatedAt;
      thread.updatedAt = comment.updatedAt;
      return { body: call.json.comment(call.repository, thread, comment) };
    },
  },
  [`DELETE ${COMMENT}`]: {
    needs: threadNeeds('write'),
    handle: (call) => {
      const { thread, comment } = commentOf(call);
      thread.comments.splice(thread.comments.indexOf(comment), 1);
      return { status: 204, body: undefined };
    },
  },
  [`POST ${ISSUE}/labels`]: {
    needs: threadNeeds('write'),
    handle: (call) => {
      const thread = threadOf(call);
      const { labels } = call.repository;
      for (const wanted of call.body.labels as string[]) {
        const known = labelOf(call.repository, wanted);
        if (known === undefined) labels.set(wanted, 'ededed');
        thread.labels.add(known ?? wanted);
      }
      thread.updatedAt = timeNow();
      return { body: [...thread.labels].map((name) => call.json.label(name, labels.get(name) ?? '')) };
    },
  },
  [`GET ${REPOSITORY}/labels/{name}`]: {
    needs: 'pull_requests:read',
    handle: ({ repository, path, json }) => {
      const name = labelOf(repository, path.name ?? '');
      if (name === undefined) throw new Failure(404, 'Not Found');
      return { body: json.label(name, repository.labels.get(name) ?? '') };
    },
  },
  [`POST ${REPOSITORY}/labels`]: {
    needs: 'pull_requests:write',
    handle: ({ repository, body, json }) => {
      const { name, color } = body as { name: string; color: string };
      if (labelOf(repository, name) !== undefined)
        throw new Invalid({ resource: 'Label', code: 'already_exists', field: 'name' });
      repository.labels.set(name, color);
      return { status: 201, body: json.label(name, color) };
    },
  },
};

function threadsOf({ pulls, issues }: GitHubRepository): Thread[] {
  return [...pulls, ...issues];
}

function threadOf({ repository, path }: Pick<Call, 'repository' | 'path'>): Thread {
  const thread = threadsOf(repository).find(({ number }) => String(number) === path.issue_number);
  if (thread === undefined) throw new Failure(404, 'Not Found');
  return thread;
}

function issueOf({ repository, path }: Call): Issue {
  const issue = repository.issues.find(({ number }) => String(number) === path.issue_number);
  if (issue === undefined) throw new Failure(404, 'Not Found');
  return issue;
}

/** The permission that an App needs is that of pull requests or of issues. */
function threadNeeds(access: 'read' | 'write'): Exclude<Route['needs'], string> {
  return ({ repository: { issues }, path }) => {
    const isIssue = issues.some(
      ({ number, comments }) =>
        String(number) === path.issue_number || comments.some(({ id }) => String(id) === path.comment_id),
    );
    return `${isIssue ? 'issues' : 'pull_requests'}:${access}`;
  };
}

function titleOf(title: unknown): string {
  const text = String(title);
  if (text.trim() === '') throw new Invalid({ resource: 'Issue', code: 'missing_field', field: 'title' });
  if (text.length > 256)
    throw new Invalid({ resource: 'Issue', code: 'custom', field: 'title', message: 'title is too long' });
  return text;
}

function commentOf({ repository, path }: Call): {
  readonly thread: Thread;
  readonly comment: Thread['comments'][number];
} {
  for (const thread of threadsOf(repository)) {
    const comment = thread.comments.find(({ id }) => String(id) === path.comment_id);
    if (comment !== undefined) return { thread, comment };
  }
  throw new Failure(404, 'Not Found');
}

function bodyOf({ body }: Call): string {
  const text = String(body.body);
  if (text.trim() === '' || text.length > MAX_COMMENT_CHARACTERS)
    throw new Invalid({ resource: 'IssueComment', code: 'unprocessable', field: 'data' });
  return text;
}

/** Names of labels are case-insensitive. */
function labelOf({ labels }: GitHubRepository, name: string): string | undefined {
  return [...labels.keys()].find((known) => known.toLowerCase() === name.toLowerCase());
}
