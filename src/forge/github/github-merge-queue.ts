import type { z } from 'zod';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { MergeQueue, QueuedMerge, QueuedMerges } from '../merge-queue.ts';
import type { GitHubClient } from './github-client.ts';
import {
  matchingRefsSchema,
  type QueuedCommit,
  type QueueEntry,
  queueEntriesSchema,
  treeSchema,
} from './github-schemas.ts';

const BRANCHES = 'gh-readonly-queue/';
/** GitHub permits as many in one page. */
const MAX_ENTRIES = 100;
/** Pull requests with a commit of a queue: none but those of users who have pushed it. With more of them, it counts as the head of one. */
const MAX_PULLS = 10;
const ENTRIES = `query ($owner: String!, $name: String!, $base: String!) {
  repository(owner: $owner, name: $name) { mergeQueue(branch: $base) { entries(first: ${MAX_ENTRIES}) { nodes {
    pullRequest { number }
    headCommit { oid associatedPullRequests(first: ${MAX_PULLS}) { totalCount nodes { state headRefOid } } }
  } } } }
}`;

/**
 * GitHub's merge queues. Users who may write can push branches with the names of a queue: these show only from where its commits can be
 * fetched. What is in the queue is what GitHub itself states.
 */
export class GitHubMergeQueue implements MergeQueue {
  readonly #client: GitHubClient;
  readonly #repository: { readonly owner: string; readonly repo: string };

  constructor(client: GitHubClient, repository: { readonly owner: string; readonly repo: string }) {
    this.#client = client;
    this.#repository = repository;
  }

  async waiting(base: string, signal: AbortSignal): Promise<QueuedMerges> {
    const entries = await this.#entries(base, signal);
    // The first entries of a queue can be there before its branches.
    const hasCommit = entries.some((entry) => entry?.headCommit);
    const branches = hasCommit ? await this.#branches(base, signal) : new Map<string, string>();
    const merges: QueuedMerge[] = [];
    let isComplete = true;
    for (const entry of entries) {
      const { pullRequest, headCommit } = entry ?? {};
      if (!pullRequest || (headCommit && isHead(headCommit))) continue;
      // An entry has no commit until GitHub has made the merge, and can have got another one before the branches were read.
      const branch = headCommit ? branches.get(headCommit.oid) : undefined;
      if (headCommit && branch !== undefined)
        merges.push({ number: pullRequest.number, commit: headCommit.oid, branch });
      else isComplete = false;
    }
    return { merges, isComplete };
  }

  /** None where GitHub refuses to state the queue, or does not know queues, and there is no branch of one. */
  async #entries(base: string, signal: AbortSignal): Promise<readonly QueueEntry[]> {
    const { owner, repo: name } = this.#repository;
    const request = { name: 'the query of the merge queue', query: ENTRIES, variables: { owner, name, base } };
    try {
      const { repository } = await this.#client.graphql(queueEntriesSchema, request, signal);
      return repository?.mergeQueue?.entries?.nodes ?? [];
    } catch (error) {
      const isOther = !isSluiceError(error, 'Refused') && !isSluiceError(error, 'InvalidInput');
      if (isOther || (await this.#branches(base, signal)).size > 0) throw error;
      return [];
    }
  }

  /** The branches of the queue, by their commits. */
  async #branches(base: string, signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
    const refs = await this.#client.call(matchingRefsSchema, signal, ({ git }, options) =>
      git.listMatchingRefs({ ...this.#repository, ref: `heads/${BRANCHES}${base}/`, ...options }),
    );
    return new Map(refs.map(({ ref, object }) => [object.sha, ref.slice('refs/heads/'.length)]));
  }

  async treeOf(commit: string, path: string, signal: AbortSignal): Promise<string | undefined> {
    let tree = await this.#tree(commit, signal);
    for (const name of path.split('/').filter((part) => part !== '')) {
      const found = tree?.tree.find((entry) => entry.path === name && entry.type === 'tree');
      if (found === undefined) return undefined;
      tree = await this.#tree(found.sha, signal);
    }
    return tree?.sha;
  }

  async #tree(tree: string, signal: AbortSignal): Promise<z.infer<typeof treeSchema> | undefined> {
    try {
      return await this.#client.call(treeSchema, signal, ({ git }, options) =>
        git.getTree({ ...this.#repository, tree_sha: tree, ...options }),
      );
    } catch (error) {
      // The queue has removed it meanwhile.
      if (isSluiceError(error, 'NotFound')) return undefined;
      throw error;
    }
  }
}

/** Of an open pull request, whose checks are others: it can be to another branch, and users can push a commit of the queue to a branch of theirs. */
function isHead({ oid, associatedPullRequests: pulls }: QueuedCommit): boolean {
  const found = pulls?.nodes ?? [];
  if (pulls === null || pulls === undefined || pulls.totalCount > found.length) return true;
  return found.some((pull) => !pull || (pull.state === 'OPEN' && pull.headRefOid === oid));
}
