import type { z } from 'zod';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { MergeQueue, QueuedMerge } from '../merge-queue.ts';
import type { GitHubClient } from './github-client.ts';
import { matchingRefsSchema, treeSchema } from './github-schemas.ts';

const QUEUES = 'gh-readonly-queue/';
/** The last part of the names of its branches: of a pull request, and the commit that it is merged into. */
const MERGE = /\/pr-(\d{1,15})-[0-9a-f]{40,64}$/;

/** GitHub's merge queues, by the branches that they make. */
export class GitHubMergeQueue implements MergeQueue {
  readonly #client: GitHubClient;
  readonly #repository: { readonly owner: string; readonly repo: string };

  constructor(client: GitHubClient, repository: { readonly owner: string; readonly repo: string }) {
    this.#client = client;
    this.#repository = repository;
  }

  async waiting(base: string, signal: AbortSignal): Promise<readonly QueuedMerge[]> {
    const prefix = `heads/${QUEUES}${base}/`;
    const refs = await this.#client.call(matchingRefsSchema, signal, ({ git }, options) =>
      git.listMatchingRefs({ ...this.#repository, ref: prefix, ...options }),
    );
    return refs.flatMap(({ ref, object }) => {
      // A branch of a name that begins with that of the base has a queue of its own.
      const number = ref.lastIndexOf('/') === `refs/${prefix}`.length - 1 ? MERGE.exec(ref)?.[1] : undefined;
      return number === undefined
        ? []
        : [{ number: Number(number), commit: object.sha, branch: ref.slice('refs/heads/'.length) }];
    });
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
