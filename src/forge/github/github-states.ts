import { z } from 'zod';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { BatchedReads } from '../batched-reads.ts';
import { cleanAddress } from '../clean-address.ts';
import type { ForgeErrorDetails, PullRequest, PullState, Review, ScheduledMerge } from '../forge.ts';
import type { Mergeability } from '../forge-merging.ts';
import { checkedForm } from '../http/checked-form.ts';
import type { Dismissal } from '../reviews/dismissed-reviews.ts';
import { type GitHubClient, graphqlCode, graphqlError } from './github-client.ts';
import { SCHEDULE, scheduledIn, scheduleSchema } from './github-schedule.ts';
import type { GraphqlError } from './github-schemas.ts';
import { mergeabilityOf, reviewStateOf } from './github-state-names.ts';

/** Pull requests of one query: GitHub ends a query after ten seconds, and a response with the longest texts is not too long. */
const MAX_PULLS = 20;
/** Failed queries of one read: enough to find two among so many that GitHub cannot return, and few while GitHub fails as a whole. */
const MAX_FAILED = 12;
/** Statuses with which GitHub reports that it could not execute a query, also because it took too long. */
const FAILED_QUERIES: ReadonlySet<number> = new Set([200, 502, 504]);
const QUERY = 'the query of pull requests';
/** GitHub permits as many in one page, and as many labels. */
const MAX_REVIEWS = 100;

/** GitHub changes the base itself where it was merged and removed. */
const BASE_CHANGES = `baseChanges: timelineItems(last: 1, itemTypes: [BASE_REF_CHANGED_EVENT, AUTOMATIC_BASE_CHANGE_SUCCEEDED_EVENT]) {
    nodes { ... on BaseRefChangedEvent { createdAt } ... on AutomaticBaseChangeSucceededEvent { createdAt } }
  }`;
const STATE = `number url state title body author { ...Login } headRefName headRefOid isCrossRepository baseRefName baseRefOid
  labels(first: 100) { nodes { name } } mergedBy { ...Login } mergeCommit { oid } closedAt createdAt updatedAt
  comments { totalCount } isInMergeQueue
  reviews(last: ${MAX_REVIEWS}, states: [APPROVED, CHANGES_REQUESTED, DISMISSED]) {
    totalCount nodes { fullDatabaseId author { ...Login } state commit { oid } url submittedAt }
  }
  ${BASE_CHANGES}`;
const DISMISSALS = `dismissals: timelineItems(last: ${MAX_REVIEWS}, itemTypes: [REVIEW_DISMISSED_EVENT]) {
    nodes { ... on ReviewDismissedEvent { createdAt previousReviewState review { fullDatabaseId } } }
  }`;
const LOGIN = 'fragment Login on Actor { __typename login }';
const MERGEABILITY = 'isDraft mergeable mergeStateStatus isInMergeQueue';

const actor = z.object({ __typename: z.string(), login: z.string() }).nullish();
const commit = z.object({ oid: z.string() }).nullish();
const reviewSchema = z.object({
  fullDatabaseId: z.union([z.string(), z.int()]).nullish(),
  author: actor,
  state: z.string(),
  commit,
  url: z.string(),
  submittedAt: z.string().nullish(),
});
const baseChangesSchema = z.object({ nodes: z.array(z.object({ createdAt: z.string() }).nullish()).nullish() });
const dismissalsSchema = z.object({
  nodes: z
    .array(
      z
        .object({
          createdAt: z.string(),
          previousReviewState: z.string(),
          review: reviewSchema.pick({ fullDatabaseId: true }).nullish(),
        })
        .nullish(),
    )
    .nullish(),
});
const stateSchema = z.object({
  number: z.int().positive(),
  url: z.string(),
  state: z.enum(['OPEN', 'CLOSED', 'MERGED']),
  title: z.string(),
  body: z.string(),
  author: actor,
  headRefName: z.string(),
  headRefOid: z.string(),
  isCrossRepository: z.boolean(),
  baseRefName: z.string(),
  baseRefOid: z.string(),
  labels: z.object({ nodes: z.array(z.object({ name: z.string() }).nullish()).nullish() }).nullish(),
  mergedBy: actor,
  mergeCommit: commit,
  closedAt: z.string().nullish(),
  createdAt: z.string(),
  updatedAt: z.string(),
  comments: z.object({ totalCount: z.int() }),
  isInMergeQueue: z.boolean(),
  reviews: z.object({ totalCount: z.int(), nodes: z.array(reviewSchema.nullish()).nullish() }).nullish(),
  baseChanges: baseChangesSchema,
});
const mergeabilitySchema = z.object({
  isDraft: z.boolean(),
  mergeable: z.enum(['MERGEABLE', 'CONFLICTING', 'UNKNOWN']),
  mergeStateStatus: z.string(),
  isInMergeQueue: z.boolean(),
});

const STATES = { OPEN: 'open', CLOSED: 'closed', MERGED: 'merged' } as const;

/** A state of which `reviews` is undefined where it has not all of them. */
type ReadState = Pick<PullState, 'pull' | 'isQueued'> & {
  readonly reviews: readonly Review[] | undefined;
  /** For `ofPresentBase`. */
  readonly baseChangedAt: string | undefined;
};

/** As a `ReadState`. */
interface ReadMerge extends Pick<ReadState, 'reviews' | 'baseChangedAt'> {
  readonly dismissals: readonly Dismissal[];
  readonly scheduled: ScheduledMerge | undefined;
  readonly unsureMerger: string | undefined;
}

const dataSchema = z.object({ repository: z.record(z.string(), z.unknown()).nullish() });

/** What a query reads of each pull request. */
interface ReadKind<Read, Result> {
  readonly fields: string;
  readonly fragment: string;
  readonly schema: z.ZodType<Read>;
  map(read: Read): Result;
}

type Results<Result> = ReadonlyMap<number, Result | Error>;

interface Answer<Result> {
  readonly read: Results<Result>;
  /** Why it has nothing of the others; undefined if it has all. */
  readonly error?: SluiceError;
  /** Whether the errors in `read` may be the reason, so that a query without these may have the others. */
  readonly isOfRead?: boolean;
}

/** What decides about pull requests, read for many with one query of GraphQL. */
export class GitHubStates {
  readonly #client: GitHubClient;
  readonly #repository: { readonly owner: string; readonly repo: string };
  readonly #states: BatchedReads<number, ReadState>;
  readonly #merges: BatchedReads<number, ReadMerge>;
  readonly #mergeabilities: BatchedReads<number, Mergeability>;

  constructor(client: GitHubClient, repository: { readonly owner: string; readonly repo: string }) {
    this.#client = client;
    this.#repository = repository;
    const state = { fields: STATE, fragment: LOGIN, schema: stateSchema, map: stateOf };
    const fields = `${STATE} ${SCHEDULE} ${DISMISSALS}`;
    const merged = {
      fields,
      fragment: LOGIN,
      schema: stateSchema.extend({ timelineItems: scheduleSchema, dismissals: dismissalsSchema }),
      map: mergeOf,
    };
    const merge = { fields: MERGEABILITY, fragment: '', schema: mergeabilitySchema, map: queuedOrMergeable };
    this.#states = new BatchedReads(MAX_PULLS, (numbers) => this.#read(numbers, state));
    this.#merges = new BatchedReads(MAX_PULLS, (numbers) => this.#read(numbers, merged));
    this.#mergeabilities = new BatchedReads(MAX_PULLS, (numbers) => this.#read(numbers, merge));
  }

  state(number: number, signal: AbortSignal): Promise<ReadState> {
    return this.#states.read(number, signal);
  }

  /** Of a merged pull request. */
  merged(number: number, signal: AbortSignal): Promise<ReadMerge> {
    return this.#merges.read(number, signal);
  }

  mergeability(number: number, signal: AbortSignal): Promise<Mergeability> {
    return this.#mergeabilities.read(number, signal);
  }

  /** Those of which a query has nothing are read with smaller ones: a pull request that GitHub cannot return must not hide the others. */
  async #read<Read, Result>(numbers: readonly number[], kind: ReadKind<Read, Result>): Promise<Results<Result>> {
    const results = new Map<number, Result | Error>();
    const parts: (readonly number[])[] = [numbers];
    let failed = 0;
    for (let part = parts.pop(); part !== undefined; part = parts.pop()) {
      const { read, error, isOfRead = false } = await this.#query(part, kind);
      for (const [number, result] of read) results.set(number, result);
      if (error === undefined) continue;
      failed += 1;
      const rest = part.filter((number) => !read.has(number));
      const isOfAll = failed === MAX_FAILED || !(isOfRead || mayBeOfOne(error));
      if (isOfAll) rest.push(...parts.splice(0).flat());
      const half = isOfRead ? rest.length : Math.ceil(rest.length / 2);
      if (isOfAll || (rest.length === 1 && !isOfRead)) for (const number of rest) results.set(number, error);
      else parts.push(...[rest.slice(half), rest.slice(0, half)].filter(({ length }) => length > 0));
    }
    return results;
  }

  async #query<Read, Result>(numbers: readonly number[], kind: ReadKind<Read, Result>): Promise<Answer<Result>> {
    const fields = numbers.map((number) => `p${number}: pullRequest(number: ${number}) { ${kind.fields} }`);
    const query = `query ($owner: String!, $name: String!) {
      repository(owner: $owner, name: $name) { ${fields.join('\n')} }
    } ${kind.fragment}`;
    const { owner, repo: name } = this.#repository;
    const read = new Map<number, Result | Error>();
    try {
      // Not with the signal of one of the callers, which must not end those of the others; each request has a timeout.
      const { signal } = new AbortController();
      const { data, errors } = await this.#client.partialGraphql({ query, variables: { owner, name } }, signal);
      const failures = errors.filter(({ type }) => type !== 'NOT_FOUND');
      // What was too much together is of none of them, also where it names what GitHub has not read because of it.
      const isOf = (failure: GraphqlError, number: number) =>
        failure.path?.[1] === `p${number}` && (numbers.length === 1 || graphqlCode(failure) !== 'LimitExceeded');
      for (const number of numbers) {
        // Also those of its fields: what is null there would be read as something that the pull request does not have.
        const [first, ...more] = failures.filter((failure) => isOf(failure, number));
        if (first !== undefined) read.set(number, graphqlError(`the query of pull request ${number}`, first, more));
      }
      const [ofAll, ...more] = failures.filter((failure) => !numbers.some((number) => isOf(failure, number)));
      if (ofAll !== undefined) return { read, error: graphqlError(QUERY, ofAll, more) };
      // GitHub leaves out what has no meaning without the failed ones.
      const { repository } = checkedForm(dataSchema, read.size > 0 ? (data ?? {}) : data, QUERY);
      const [first, ...others] = failures;
      if (!repository && first !== undefined)
        return { read, error: graphqlError(QUERY, first, others), isOfRead: true };
      for (const number of numbers)
        if (!read.has(number)) read.set(number, this.#resultOf(number, repository?.[`p${number}`], kind));
      return { read };
    } catch (error) {
      if (!isSluiceError(error)) throw error;
      return { read, error };
    }
  }

  #resultOf<Read, Result>(number: number, found: unknown, kind: ReadKind<Read, Result>): Result | Error {
    const { owner, repo: name } = this.#repository;
    if (found === undefined || found === null) {
      const missing = `pull request ${number} of ${owner}/${name} does not exist, or the token cannot read it`;
      return new SluiceError('NotFound', missing);
    }
    try {
      return kind.map(checkedForm(kind.schema, found, `the query of pull request ${number}`));
    } catch (error) {
      if (isSluiceError(error)) return error;
      throw error;
    }
  }
}

/** Whether a query may have failed because of one of its pull requests, or because they are too much together. */
function mayBeOfOne({ code, details }: SluiceError): boolean {
  const { status } = (details ?? {}) as ForgeErrorDetails;
  return code === 'LimitExceeded' || (code === 'Unavailable' && status !== undefined && FAILED_QUERIES.has(status));
}

function stateOf(read: z.infer<typeof stateSchema>): ReadState {
  const { number, state, title, body, closedAt, createdAt, updatedAt, mergedBy, mergeCommit } = read;
  const isMerged = state === 'MERGED';
  const pull: PullRequest = {
    ...{ number, url: cleanAddress(read.url), state: STATES[state], title, body, author: loginOf(read.author) ?? '' },
    head: { branch: read.headRefName, commit: read.headRefOid, isSameRepository: !read.isCrossRepository },
    base: { branch: read.baseRefName },
    labels: (read.labels?.nodes ?? []).flatMap((label) => label?.name ?? []),
    hasComments: read.comments.totalCount > 0,
    ...(isMerged ? { merged: { commit: mergeCommit?.oid ?? '', by: loginOf(mergedBy), base: read.baseRefOid } } : {}),
    ...(closedAt === undefined || closedAt === null ? {} : { closedAt }),
    ...{ createdAt, updatedAt },
  };
  const { isInMergeQueue: isQueued } = read;
  const [baseChange] = read.baseChanges.nodes ?? [null];
  // Reviews from before a change do not count, and one that could not be read may be the last change of all.
  const baseChangedAt = baseChange === null ? updatedAt : baseChange?.createdAt;
  const { totalCount, nodes } = read.reviews ?? {};
  const found = (nodes ?? []).flatMap((one) => one ?? []);
  // Nodes that could not be read are null: what is missing could be the review that an approval was recorded for.
  if (totalCount !== found.length) return { pull, isQueued, reviews: undefined, baseChangedAt };
  // Of each author the last one.
  const last = new Map<string, Review>();
  for (const review of found.flatMap((one) => reviewOf(one) ?? [])) {
    last.delete(review.author);
    last.set(review.author, review);
  }
  return { pull, isQueued, reviews: [...last.values()], baseChangedAt };
}

function mergeOf({
  timelineItems,
  dismissals: { nodes },
  ...state
}: z.infer<typeof stateSchema> & {
  readonly timelineItems: z.infer<typeof scheduleSchema>;
  readonly dismissals: z.infer<typeof dismissalsSchema>;
}): ReadMerge {
  const { pull, reviews, baseChangedAt } = stateOf(state);
  const merge = { mergedAt: pull.closedAt ?? '', head: pull.head.commit };
  // Each method of merging of GitHub makes commits of its own. The head itself is in the branch by a push, or by the merge of another pull request.
  const isIndirect = pull.merged !== undefined && pull.merged.commit === pull.head.commit;
  const unsureMerger = isIndirect
    ? 'the commits came to the branch by a push, or by the merge of another pull request, whose last state that user may have seen alone'
    : undefined;
  const dismissals = (nodes ?? []).flatMap((one) =>
    one === undefined || one === null
      ? []
      : {
          review: String(one.review?.fullDatabaseId ?? ''),
          ...{ at: one.createdAt, wasRequest: one.previousReviewState === 'CHANGES_REQUESTED' },
        },
  );
  return { reviews, baseChangedAt, dismissals, scheduled: scheduledIn(timelineItems, merge), unsureMerger };
}

function reviewOf(review: z.infer<typeof reviewSchema>): Review | undefined {
  const state = reviewStateOf(review.state);
  const author = loginOf(review.author);
  if (state === undefined || author === undefined) return undefined;
  const { fullDatabaseId: id, commit: of, url, submittedAt } = review;
  return {
    ...{ id: String(id ?? ''), author, state, commit: of?.oid },
    ...{ url: cleanAddress(url), submittedAt: submittedAt ?? '' },
  };
}

/** The REST API has the names of Apps with an ending that no user can have, which GraphQL leaves out. */
function loginOf(of: z.infer<typeof actor>): string | undefined {
  if (of === undefined || of === null) return undefined;
  return of.__typename === 'Bot' && !of.login.endsWith('[bot]') ? `${of.login}[bot]` : of.login;
}

function queuedOrMergeable(read: z.infer<typeof mergeabilitySchema>): Mergeability {
  const { isDraft, isInMergeQueue, mergeable, mergeStateStatus } = read;
  if (isInMergeQueue && !isDraft) return 'queued';
  return mergeabilityOf(mergeStateStatus, isDraft, mergeable !== 'UNKNOWN');
}
