import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import type { ForgeErrorDetails, PullRequest } from '../forge.ts';
import type { BranchRules, MergeMethod, MergeObstacle, MergeOutcome, MergeRequest } from '../forge-merging.ts';
import type { GitHubClient } from './github-client.ts';
import {
  anySchema,
  type BranchRule,
  branchRulesSchema,
  branchSchema,
  type MergeState,
  mergeResultSchema,
  mergeStateSchema,
  methodsSchema,
  queuedSchema,
  queueEntrySchema,
} from './github-schemas.ts';
import { mergeabilityOf } from './github-state-names.ts';

/** Texts of GitHub's refusals, in the order in which they are looked for. The first ones are reports of an old state. */
const OBSTACLES: readonly (readonly [RegExp, MergeObstacle])[] = [
  [/base branch was modified/i, 'unknown'],
  [/is still a draft/i, 'draft'],
  [/merge (?:commits?|method)|(?:squash|rebase) merges?/i, 'method'],
  [/head branch (?:is|was) (?:out of date|behind)|not up to date|must be up.to.date/i, 'behind'],
  [/required status check|approving review|protected branch|rule violation|changes? must be/i, 'blocked'],
];
const RULES_PER_PAGE = 100;
const METHODS = ['merge', 'squash', 'rebase'] as const;

const IS_QUEUED = `query ($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) { isInMergeQueue } }
}`;
const ENQUEUE = `mutation ($id: ID!, $head: GitObjectID!) {
  enqueuePullRequest(input: { pullRequestId: $id, expectedHeadOid: $head }) { mergeQueueEntry { id } }
}`;

const QUEUE_ENTRY = `query ($owner: String!, $name: String!, $number: Int!) {
  viewer { login }
  repository(owner: $owner, name: $name) { pullRequest(number: $number) { id mergeQueueEntry { enqueuer { login } } } }
}`;
const DEQUEUE = `mutation ($id: ID!) {
  dequeuePullRequest(input: { id: $id }) { mergeQueueEntry { id } }
}`;

type ReadPull = (number: number, signal: AbortSignal) => Promise<PullRequest>;

interface Repository {
  readonly owner: string;
  readonly repo: string;
}

/** The part of GitHub's API that merges. */
export class GitHubMerging {
  readonly #client: GitHubClient;
  readonly #repository: Repository;
  readonly #get: ReadPull;

  constructor(client: GitHubClient, repository: Repository, get: ReadPull) {
    this.#client = client;
    this.#repository = repository;
    this.#get = get;
  }

  async merge(number: number, wanted: MergeRequest, signal: AbortSignal): Promise<MergeOutcome> {
    const { headCommit: sha, method, title, message } = wanted;
    // A rebase makes commits with the messages of the branch.
    const text = method === 'rebase' ? {} : { commit_title: title, commit_message: message };
    let refusal: SluiceError;
    try {
      const { sha: commit } = await this.#client.call(mergeResultSchema, signal, ({ pulls }, options) =>
        pulls.merge({ ...this.#repository, pull_number: number, sha, merge_method: method, ...text, ...options }),
      );
      return { state: 'merged', commit };
    } catch (error) {
      if (!isSluiceError(error) || ![405, 409].includes(statusOf(error))) throw error;
      refusal = error;
    }
    const pull = await this.#get(number, signal);
    if (pull.head.commit !== sha)
      throw new SluiceError('Conflict', `${pull.url} has another head than ${sha}; read it again`, { cause: refusal });
    if (pull.state === 'merged') return { state: 'merged', commit: pull.merged?.commit || undefined };
    if (pull.state === 'closed') return { state: 'refused', obstacle: 'closed', message: 'it was closed' };
    if (/merge queue/i.test(refusal.message)) return this.#enqueue(number, sha, signal);
    return { state: 'refused', obstacle: await this.#obstacleOf(number, refusal, signal), message: refusal.message };
  }

  async dequeue(number: number, signal: AbortSignal): Promise<'removed' | 'absent' | 'other'> {
    const { owner, repo: name } = this.#repository;
    const asked = { name: 'the query of the merge queue', query: QUEUE_ENTRY, variables: { owner, name, number } };
    const { viewer, repository } = await this.#client.graphql(queueEntrySchema, asked, signal, ['NOT_FOUND']);
    const { id, mergeQueueEntry: entry } = repository?.pullRequest ?? {};
    if (id === undefined || entry === undefined || entry === null) return 'absent';
    if (nameOf(entry.enqueuer?.login) !== nameOf(viewer.login)) return 'other';
    try {
      const request = { name: 'dequeuePullRequest', query: DEQUEUE, variables: { id } };
      await this.#client.graphql(anySchema, request, signal);
      return 'removed';
    } catch (error) {
      if (!isSluiceError(error) || !['InvalidInput', 'Conflict'].includes(error.code)) throw error;
      // It may have left the queue meanwhile.
      if (!(await this.#isQueued(number, signal))) return 'absent';
      throw error;
    }
  }

  /** Rules of rulesets are open to readers; of classic protections only that there is one. */
  async branchRules(branch: string, signal: AbortSignal): Promise<BranchRules> {
    const { protected: isProtected } = await this.#client.call(branchSchema, signal, ({ repos }, options) =>
      repos.getBranch({ ...this.#repository, branch, ...options }),
    );
    if (!isProtected) return { requiresUpToDate: false };
    const rules = await this.#rules(branch, signal);
    const isStrict = rules.some(({ parameters }) => parameters?.strict_required_status_checks_policy === true);
    return isStrict ? { requiresUpToDate: true } : {};
  }

  /** Those of the repository that no ruleset excludes; GitHub states them to users and Apps that may push. */
  async mergeMethods(branch: string, signal: AbortSignal): Promise<readonly MergeMethod[] | undefined> {
    const stated = await this.#client.call(methodsSchema, signal, ({ repos }, options) =>
      repos.get({ ...this.#repository, ...options }),
    );
    const isPermitted: Readonly<Record<MergeMethod, boolean | null | undefined>> = {
      ...{ merge: stated.allow_merge_commit, squash: stated.allow_squash_merge, rebase: stated.allow_rebase_merge },
    };
    if (Object.values(isPermitted).some((one) => typeof one !== 'boolean')) return undefined;
    const rules = await this.#rules(branch, signal);
    const isLinear = rules.some(({ type }) => type === 'required_linear_history');
    return METHODS.filter(
      (method) =>
        isPermitted[method] === true &&
        !(isLinear && method === 'merge') &&
        rules.every(({ parameters }) => parameters?.allowed_merge_methods?.includes(method) !== false),
    );
  }

  #rules(branch: string, signal: AbortSignal): Promise<readonly BranchRule[]> {
    return this.#client.call(branchRulesSchema, signal, ({ repos }, options) =>
      repos.getBranchRules({ ...this.#repository, branch, per_page: RULES_PER_PAGE, ...options }),
    );
  }

  #state(number: number, signal: AbortSignal): Promise<MergeState> {
    return this.#client.call(mergeStateSchema, signal, ({ pulls }, options) =>
      pulls.get({ ...this.#repository, pull_number: number, ...options }),
    );
  }

  async #isQueued(number: number, signal: AbortSignal): Promise<boolean> {
    const { owner, repo: name } = this.#repository;
    const asked = { name: 'the query of the merge queue', query: IS_QUEUED, variables: { owner, name, number } };
    const { repository } = await this.#client.graphql(queuedSchema, asked, signal);
    return repository?.pullRequest?.isInMergeQueue === true;
  }

  async #enqueue(number: number, head: string, signal: AbortSignal): Promise<MergeOutcome> {
    const { node_id: id } = await this.#state(number, signal);
    try {
      const request = { name: 'enqueuePullRequest', query: ENQUEUE, variables: { id, head } };
      await this.#client.graphql(anySchema, request, signal);
      return { state: 'queued' };
    } catch (error) {
      if (!isSluiceError(error) || !['InvalidInput', 'Conflict'].includes(error.code)) throw error;
      if (await this.#isQueued(number, signal)) return { state: 'queued' };
      const pull = await this.#get(number, signal);
      if (pull.head.commit !== head)
        throw new SluiceError('Conflict', `${pull.url} has another head than ${head}; read it again`, { cause: error });
      return { state: 'refused', obstacle: 'blocked', message: error.message };
    }
  }

  /** `not mergeable` is what GitHub reports of a state that it has not computed again: the present one says what it means. */
  async #obstacleOf(number: number, { message }: SluiceError, signal: AbortSignal): Promise<MergeObstacle> {
    const found = OBSTACLES.find(([pattern]) => pattern.test(message))?.[1];
    if (found !== undefined) return found;
    const { draft, mergeable, mergeable_state: stated } = await this.#state(number, signal);
    // Null while GitHub finds out, with any state.
    const state = mergeabilityOf(stated, draft === true, typeof mergeable === 'boolean');
    if (state === 'mergeable' || state === 'queued') return /not mergeable/i.test(message) ? 'unknown' : 'blocked';
    return state;
  }
}

/** An App has an ending in its own name that it does not have as an actor. */
function nameOf(login: string | undefined): string | undefined {
  return login?.replace(/\[bot\]$/, '').toLowerCase();
}

function statusOf({ details }: SluiceError): number {
  return (details as ForgeErrorDetails | undefined)?.status ?? 0;
}
