import { schema as published } from '@octokit/graphql-schema';
import { buildSchema, type GraphQLSchema, graphqlSync, parse, validate } from 'graphql';
import type { GitHubRepository, Pull } from './github-repository.ts';

let schema: GraphQLSchema | undefined;

/** A request to GitHub's GraphQL API, executed by its published schema: what it does not describe is in `problems`. */
export function answerGraphql(
  repositories: readonly GitHubRepository[],
  { query, variables }: { readonly query: string; readonly variables: Record<string, unknown> },
  problems: string[],
): unknown {
  schema ??= buildSchema(published.idl, { assumeValid: true });
  problems.push(...validate(schema, parse(query)).map(({ message }) => `GraphQL: ${message}`));
  const failures: { type: string; message: string }[] = [];
  const rootValue = {
    repository: ({ owner, name }: { owner: string; name: string }) => {
      const repository = repositories.find((one) => one.owner === owner && one.name === name);
      if (repository === undefined) return null;
      const pullRequest = ({ number }: { number: number }) => {
        const pull = repository.pulls.find((one) => one.number === number);
        return pull === undefined ? null : { isInMergeQueue: repository.queue.has(pull.number) };
      };
      return { pullRequest };
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
