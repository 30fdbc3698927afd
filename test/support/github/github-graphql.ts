import { schema as published } from '@octokit/graphql-schema';
import {
  buildSchema,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  graphqlSync,
  parse,
  responsePathAsArray,
  validate,
} from 'graphql';
import type { GitHubRepository, Pull } from './github-repository.ts';

let schema: GraphQLSchema | undefined;

/** A request to GitHub's GraphQL API, executed by its published schema: what it does not describe is in `problems`. */
export function answerGraphql(
  repositories: readonly GitHubRepository[],
  { query, variables }: { readonly query: string; readonly variables: Record<string, unknown> },
  problems: string[],
  /** Address of the server. */
  url: string,
  /** Numbers of pull requests that it cannot return. */
  unreturned: ReadonlySet<number>,
): unknown {
  schema ??= buildSchema(published.idl, { assumeValid: true });
  problems.push(...validate(schema, parse(query)).map(({ message }) => `GraphQL: ${message}`));
  const failures: { type?: string; message: string; path?: readonly (string | number)[] }[] = [];
  const rootValue = {
    repository: ({ owner, name }: { owner: string; name: string }) => {
      const repository = repositories.find((one) => one.owner === owner && one.name === name);
      if (repository === undefined) return null;
      const pullRequest = ({ number }: { number: number }, _context: unknown, info: GraphQLResolveInfo) => {
        const path = responsePathAsArray(info.path);
        const pull = repository.pulls.find((one) => one.number === number);
        if (unreturned.has(number))
          failures.push({ message: 'Something went wrong while executing your query.', path });
        else if (pull !== undefined) return pullOf(repository, pull, url);
        else
          failures.push({
            ...{ type: 'NOT_FOUND', path },
            message: `Could not resolve to a PullRequest with the number of ${number}.`,
          });
        return null;
      };
      return { pullRequest, mergeQueue: ({ branch }: { branch: string }) => queueOf(repository, branch, url) };
    },
    viewer: () => {
      const [first] = repositories;
      return { login: first?.viewer ?? '' };
    },
    dequeuePullRequest: ({ input }: { input: { id: string } }) => {
      const { repository, pull } = find(repositories, input.id);
      if (repository !== undefined && pull !== undefined && repository.queue.delete(pull.number))
        return { mergeQueueEntry: { id: 'MQE_1' } };
      failures.push({ type: 'UNPROCESSABLE', message: 'Pull request is not in the merge queue' });
      return null;
    },
    node: ({ id }: { id: string }) => {
      const threads = repositories.flatMap(({ pulls, issues }) => [...pulls, ...issues]);
      const comment = threads.flatMap(({ comments }) => comments).find((one) => `IC_${one.id}` === id);
      if (comment === undefined) return null;
      return { __typename: 'IssueComment', body: comment.body, lastEditedAt: comment.lastEditedAt ?? null };
    },
    enqueuePullRequest: ({ input }: { input: { pullRequestId: string; expectedHeadOid?: string } }) => {
      const message = enqueue(find(repositories, input.pullRequestId), input.expectedHeadOid);
      if (message === undefined) return { mergeQueueEntry: { id: 'MQE_1' } };
      failures.push({ type: 'UNPROCESSABLE', message });
      return null;
    },
  };
  const { data, errors = [] } = graphqlSync({ schema, source: query, rootValue, variableValues: variables });
  problems.push(...errors.map(({ message }) => `GraphQL: ${message}`));
  return failures.length === 0 ? { data } : { data, errors: failures };
}

/** With a function for what takes time or arguments. */
function pullOf(repository: GitHubRepository, pull: Pull, url: string) {
  const { number, title, body, author, head, base, baseCommit, merged, closedAt, createdAt, updatedAt } = pull;
  const { labels, comments } = pull;
  const page = `${url}/${repository.owner}/${repository.name}/pull/${number}`;
  const mergeState = () => repository.mergeState(pull);
  return {
    ...{ number, title, body: body ?? '', url: page, author: actor(author), isDraft: false, createdAt, updatedAt },
    state: merged !== undefined ? 'MERGED' : closedAt === undefined ? 'OPEN' : 'CLOSED',
    ...{ headRefName: head.branch, headRefOid: head.commit, isCrossRepository: head.repository !== repository },
    ...{ baseRefName: base, baseRefOid: baseCommit },
    labels: ({ first: count }: { first: number }) => ({ nodes: [...labels].slice(0, count).map((name) => ({ name })) }),
    ...{ mergedBy: merged === undefined ? null : actor(merged.by), closedAt: closedAt ?? null },
    mergeCommit: merged === undefined ? null : { oid: merged.commit },
    comments: { totalCount: comments.length },
    isInMergeQueue: repository.queue.has(number),
    timelineItems: ({ last, itemTypes }: { last: number; itemTypes: readonly string[] }) => {
      const found = pull.timeline.filter(({ type }) => itemTypes.includes(itemType(type)));
      const nodes = found.slice(-last).map((one) => ({
        ...{ __typename: one.type, actor: actor(one.actor), createdAt: one.at },
        ...(one.dismissed === undefined
          ? {}
          : { previousReviewState: one.dismissed.was, review: { fullDatabaseId: String(one.dismissed.id) } }),
      }));
      return { pageInfo: { hasPreviousPage: nodes.length < found.length }, nodes };
    },
    id: `PR_${repository.id}_${number}`,
    mergeQueueEntry: repository.queue.has(number)
      ? { enqueuer: actor(repository.queuedBy.get(number) ?? repository.viewer) }
      : null,
    mergeable: () => ({ unknown: 'UNKNOWN', dirty: 'CONFLICTING' })[mergeState()] ?? 'MERGEABLE',
    mergeStateStatus: () => mergeState().toUpperCase(),
    reviews: ({ last, states }: { last: number; states: readonly string[] }) => {
      const found = pull.reviews.filter(({ state }) => states.includes(state));
      const nodes = found.slice(-last).map(({ id, user, state, commit, at }) => ({
        ...{ fullDatabaseId: String(id), author: actor(user), state, commit: { oid: commit }, submittedAt: at },
        url: `${page}#pullrequestreview-${id}`,
      }));
      return { totalCount: found.length, nodes };
    },
  };
}

/** Null for a branch without a queue. */
function queueOf(repository: GitHubRepository, branch: string, url: string) {
  const pulls = repository.pulls.filter((pull) => pull.base === branch && repository.queue.has(pull.number));
  if (pulls.length === 0 && repository.protections.get(branch)?.hasQueue !== true) return null;
  const entries = pulls.map((pull) => {
    const commit = repository.queueCommits.get(pull.number);
    return {
      pullRequest: pullOf(repository, pull, url),
      headCommit: commit === undefined ? null : commitOf(repository, commit, url),
    };
  });
  return {
    entries: ({ first }: { first: number }) => ({ totalCount: entries.length, nodes: entries.slice(0, first) }),
  };
}

function commitOf(repository: GitHubRepository, commit: string, url: string) {
  const found = repository.pulls.filter((pull) => pull.closedAt === undefined && repository.contains(pull, commit));
  const nodes = found.map((pull) => pullOf(repository, pull, url));
  return {
    oid: commit,
    associatedPullRequests: ({ first }: { first: number }) => ({
      totalCount: nodes.length,
      nodes: nodes.slice(0, first),
    }),
  };
}

/** `AutoMergeEnabledEvent` is `AUTO_MERGE_ENABLED_EVENT`. */
function itemType(type: string): string {
  return type.replace(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase();
}

/** As GitHub's GraphQL names Apps, which is not as its REST API does. */
function actor(login: string) {
  return { __typename: login.endsWith('[bot]') ? 'Bot' : 'User', login: login.replace(/\[bot\]$/, '') };
}

function find(repositories: readonly GitHubRepository[], id: string) {
  const [, repositoryId, number] = /^PR_(\d+)_(\d+)$/.exec(id) ?? [];
  const repository = repositories.find((one) => String(one.id) === repositoryId);
  return { repository, pull: repository?.pulls.find((one) => String(one.number) === number) };
}

/** Returns why it cannot be put into the queue. */
function enqueue(
  { repository, pull }: { readonly repository?: GitHubRepository | undefined; readonly pull?: Pull | undefined },
  head: string | undefined,
): string | undefined {
  if (repository === undefined || pull === undefined) return 'Could not resolve to a node with the global id';
  if (head !== undefined && head !== pull.head.commit) return 'The expected head oid does not match the current head';
  if (repository.queue.has(pull.number)) return 'Pull request is already in the merge queue';
  const state = repository.mergeState(pull);
  if (state !== 'clean') return `Pull request cannot be added to the merge queue: it is ${state}`;
  repository.queue.add(pull.number);
  return undefined;
}
