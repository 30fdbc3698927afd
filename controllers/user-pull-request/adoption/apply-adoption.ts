import type { Comment, Forge, PullRequest } from '../../../src/forge/forge.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import { REVIEW_ACTOR, type ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import type { Repository } from '../../../src/resource/kinds/porch/repository.ts';
import { keyOf, type ObjectKey, type Stored } from '../../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import { authorshipOf, waitFor } from '../../pull-request/commands/edited-comments.ts';
import type { MayCreate } from '../../pull-request/rights.ts';
import { inlineCode, plainLine } from '../../pull-request/text/quote.ts';
import type { SyncRequests } from '../../repository/sync-requests.ts';
import type { ReadComments } from '../commands/comments.ts';
import type { JudgedPull, PulledPackage } from '../describe-user-pull.ts';
import { keyAt, type PulledHead } from '../judging/read-user-pull.ts';
import type { UserPulls } from '../reading/user-pulls.ts';
import type { Written } from '../reading/written.ts';
import type { Registration } from '../registrations/registrations.ts';
import { type AdoptRequest, adoptPackages, adoptRequestsIn, authorizeAdoption, type PolicyPackages } from './adopt.ts';

/** Requests for the adoption of one pull request that are checked besides the last one. */
const MAX_EARLIER = 19;
const TOPIC = 'adopt';
/** Where the reply keeps the last comment whose request was carried out or refused, for later processes: after its first line, which is the topic. */
const HANDLED = /^.*\n<!-- sluice:handled comment=(\d+) -->/;
const UNKNOWN_REQUESTER =
  'This host does not report whether another user has edited the request, and no webhook with the event of comments has shown how its author wrote it. Set up that webhook, so that only requests as their authors wrote them count (docs/webhooks.md).';

export interface AdoptionContext {
  readonly store: Pick<RevisionStore, 'find' | 'change'>;
  readonly events: EventDeduplicator;
  readonly clock: Clock;
  readonly mayCreate: MayCreate | undefined;
  readonly requests: Pick<SyncRequests, 'isAsWritten'> | undefined;
  /** Where the members of the teams of a policy are read. */
  teamsOf(review: ReviewPolicy, namespace: string): Pick<Forge, 'isTeamMember'>;
  readonly signal: AbortSignal;
}

export interface Adoptable {
  /** That whose controller replies. */
  readonly object: Stored<Repository>;
  readonly registrations: readonly Pick<Registration, 'key'>[];
  readonly pulls: UserPulls;
  readonly pull: PullRequest;
  readonly head: PulledHead;
  readonly read: Pick<JudgedPull, 'packages' | 'unread'>;
  readonly comments: ReadComments;
}

/** What was done, for the comment. */
interface Reply {
  readonly isDone: boolean;
  /** In Markdown; empty if all packages are drafts now. */
  readonly problems: readonly string[];
  readonly note?: string | undefined;
  /** Id of the comment with the last request, once it is carried out or refused. */
  readonly handled?: string;
}

/**
 * Adopts the packages whose policy has them adopted, and for the others carries out the last request that counts, once. Returns whether drafts were
 * requested.
 */
export async function applyAdoption(context: AdoptionContext, about: Adoptable): Promise<boolean> {
  const { pulls, pull, head, read } = about;
  const wanted = read.packages.filter(({ judged }) => judged !== undefined);
  const isAutomatic = ({ review }: PulledPackage) => review.userPullRequests === 'adopt' && head.isPushed;
  const automatic = await adoptAutomatically(context, about, wanted.filter(isAutomatic));
  const requested = wanted.filter((one) => !isAutomatic(one));
  const onRequest = requested.length === 0 ? undefined : await adoptOnRequest(context, about, requested);
  const replies = [automatic, onRequest].filter((one) => one !== undefined);
  if (replies.length === 0) return false;
  const problems = replies.flatMap((one) => one.problems).slice(0, 20);
  const lines = problems.length === 0 ? ['The packages are adopted as drafts.'] : problems;
  const memory = pulls.writtenOf(pull.number);
  const handled = onRequest?.handled ?? memory.handled;
  const text = [...lines, ...replies.flatMap(({ note }) => note ?? [])].join('\n\n');
  const kept = handled === undefined ? text : `<!-- sluice:handled comment=${handled} -->\n\n${text}`;
  await pulls.forge.setComment(pull.number, TOPIC, kept, context.signal);
  if (handled !== undefined) memory.handled = handled;
  return replies.some(({ isDone }) => isDone);
}

async function adoptAutomatically(
  { store, signal }: AdoptionContext,
  { pull }: Adoptable,
  packages: readonly PulledPackage[],
): Promise<Reply | undefined> {
  if (packages.every(({ draft }) => draft !== undefined)) return undefined;
  const context = { actor: { name: REVIEW_ACTOR }, face: 'controller', reason: reasonOf(pull), signal } as const;
  const problems: string[] = [];
  for (const { repository, names } of byPolicy(packages))
    problems.push(...(await adoptPackages({ store, repository, pull, packages: names, context })));
  return { isDone: true, problems };
}

/** Undefined if there is no request, or one that waits for a webhook. */
async function adoptOnRequest(
  context: AdoptionContext,
  { object, registrations, pulls, pull, head, read: { unread }, comments }: Adoptable,
  packages: readonly PulledPackage[],
): Promise<Reply | undefined> {
  const { store, events, clock, requests, signal } = context;
  if (packages.every(({ review }) => review.approvers.length === 0)) return undefined;
  const memory = pulls.writtenOf(pull.number);
  const [last, ...earlier] = await requestsSince(memory, adoptRequestsIn(await comments()), async () =>
    HANDLED.exec((await pulls.forge.findComment(pull.number, TOPIC, signal))?.body ?? '')?.at(1),
  );
  if (last === undefined) return undefined;
  const rules = { isRestricted: !head.isPushed, teamsOf: context.teamsOf, mayCreate: context.mayCreate };
  const source = { forge: pulls.forge, asShown: shownBy(requests, keyOf(object), registrations) };
  const wanted = byPolicy(packages);
  let isAwaited = false;
  const decide = async (one: AdoptRequest) => {
    const decided = await authorizeAdoption(one, pull, wanted, rules, signal);
    if ('refusal' in decided) return decided;
    const authorship = await authorshipOf(one.comment, source, signal);
    if (authorship === 'edited') return { refusal: 'it was edited; write it again' };
    // Without a webhook it counts: a user who may edit comments of others may push drafts too.
    const isUnknown = authorship === 'unknown';
    isAwaited = isUnknown && waitFor(memory, one.comment, clock.monotonic()) !== undefined;
    return { ...decided, note: isUnknown ? UNKNOWN_REQUESTER : undefined };
  };
  let request = last;
  let decision = await decide(last);
  // One that does not count must not hide an earlier one that does.
  for (const one of earlier.slice(0, MAX_EARLIER)) {
    if ('authorized' in decision) break;
    const other = await decide(one);
    if ('authorized' in other) [request, decision] = [one, other];
  }
  if (isAwaited) return undefined;
  delete memory.awaited;
  if ('refusal' in decision) {
    const { refusal } = decision;
    const message = `the request ${request.url} of ${plainLine(request.author, 100)} to adopt ${pull.url} does not count: ${refusal}`;
    events.record(object, 'Warning', 'NotAdopted', message, adoptTopic(pull.number));
    const problems = [`The request of ${inlineCode(request.author)} does not count: ${inlineCode(refusal, 500)}`];
    return { isDone: false, problems, handled: last.comment.id };
  }
  // The policies of all packages decide whether any is adopted.
  if (unread.length > 0) {
    const problems = [`The request of ${inlineCode(request.author)} is carried out once all packages are read:`];
    return { isDone: false, problems: [...problems, ...unread.map((one) => inlineCode(one, 500))] };
  }
  const reason = `${reasonOf(pull)} by ${request.url}`;
  const problems: string[] = [];
  for (const { repository, actor, names } of decision.authorized) {
    const as = { actor, face: 'api', reason, signal } as const;
    problems.push(...(await adoptPackages({ store, repository, pull, packages: names, context: as })));
  }
  return { isDone: true, problems, note: decision.note, handled: last.comment.id };
}

/** Those after the last one that was carried out or refused: a repetition would bring back a draft that was deleted since. */
async function requestsSince(
  memory: Pick<Written, 'handled'>,
  all: readonly AdoptRequest[],
  readHandled: () => Promise<string | undefined>,
): Promise<readonly AdoptRequest[]> {
  if (all.length === 0) return all;
  const handled = memory.handled ?? (await readHandled());
  if (handled === undefined) return all;
  memory.handled = handled;
  return all.filter(({ comment }) => BigInt(comment.id) > BigInt(handled));
}

/**
 * What the webhooks of all Repositories have shown of a comment: each can show that it was edited. That it is as it was written counts from the
 * namespace alone whose controller reads the comment, since others can sign what they like.
 */
export function shownBy(
  requests: AdoptionContext['requests'],
  { namespace }: Pick<ObjectKey, 'namespace'>,
  registrations: readonly Pick<Registration, 'key'>[],
): (comment: Comment) => boolean | undefined {
  return (comment) => {
    const shown = registrations.map(({ key }) => ({ key, is: requests?.isAsWritten(key, comment) }));
    if (shown.some(({ is }) => is === false)) return false;
    return shown.some(({ key, is }) => is === true && key.namespace === namespace) || undefined;
  };
}

function byPolicy(packages: readonly PulledPackage[]): readonly PolicyPackages[] {
  const groups = Map.groupBy(packages, ({ repository, review }) => JSON.stringify([repository.id, review.policy]));
  return [...groups.values()].flatMap((some) => {
    const [first] = some;
    if (first === undefined) return [];
    const { repository, review } = first;
    return { repository, review, names: some.map(({ path }) => nameOf(repository, path)) };
  });
}

function nameOf(repository: PackageRepository, path: string): string {
  return keyAt({ repository, workspace: '' }, path).package;
}

function reasonOf({ url }: PullRequest): string {
  return `adopted from ${url}`;
}

/** The topic of events about the adoption of a pull request. */
export function adoptTopic(number: number): string {
  return `adopt ${number}`;
}
