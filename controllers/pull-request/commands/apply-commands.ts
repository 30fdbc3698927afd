import { isDeepStrictEqual } from 'node:util';
import type { ReconcileResult } from '../../../src/controller/reconciler.ts';
import type { Comment, Forge, PullRequest } from '../../../src/forge/forge.ts';
import { isSluiceError } from '../../../src/foundation/sluice-error.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import type { ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import {
  byId,
  type ExecutedCommand,
  executedIn,
  isExecuted,
} from '../../../src/package/model/record/executed-commands.ts';
import type { Explanation } from '../../../src/package/model/revision/explanation.ts';
import type { RevisionEvaluation } from '../../../src/package/store/evaluate-revision.ts';
import type { PackageRevision } from '../../../src/resource/kinds/porch/package-revision.ts';
import { keyOf, keyText, type ObjectKey, type Stored } from '../../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import type { SyncRequests } from '../../repository/sync-requests.ts';
import { approverAt } from '../reviews/approver-at.ts';
import { writeComment } from '../write-comment.ts';
import { describeCommands, describeUnmapped } from './describe-commands.ts';
import { type AwaitedComment, authorshipOf, isEdited, waitFor } from './edited-comments.ts';
import { parseCommand } from './parse-command.ts';
import { type CommandContext, hasEffect, runCommand } from './run-command.ts';

/** Topics of the comments of Sluice. */
export const REPLY = 'commands';
const UNMAPPED = 'unmapped';
/** Comments that are read at once, and how often. */
export const MAX_COMMENTS = 500;
const MAX_LISTS = 20;

export interface CommandsContext extends CommandContext {
  readonly events: EventDeduplicator;
  readonly clock: Clock;
  readonly requests: Pick<SyncRequests, 'isAsWritten'> | undefined;
}

/** A proposal with the pull request that has the comments. */
export interface CommentedProposal {
  readonly object: Stored<PackageRevision>;
  readonly evaluation: RevisionEvaluation;
  readonly review: ReviewPolicy;
  readonly repository: ObjectKey;
  readonly pull: PullRequest;
  readonly forge: Forge;
  /** The content that its head was seen with. */
  readonly seen: { readonly content: string; readonly at: string } | undefined;
  /** Set if several proposals share the pull request. Then none of them replies by itself. */
  readonly shared?: SharedComments | undefined;
  /** What is kept in memory between two calls. */
  readonly state: CommandState;
}

export interface SharedComments {
  /** Names of the revisions, sorted; the first one answers for all what is about none of them. */
  readonly names: readonly string[];
  /** Comments as `Forge.comments` returns them, read once for all. */
  read(since: string): Promise<readonly Comment[]>;
  /** Takes over what was executed, for the reply. */
  note(executed: ExecutedCommand): void;
}

export interface CommandState {
  /** The pull request as it was when its comments were read last. */
  of?: PullRequest;
  /** Time of the last comment of a full list: all before were looked at. */
  since?: string;
  /** The reply as it was written last. */
  reply?: string;
  /** Those that were executed, as far as is known. */
  executed?: readonly ExecutedCommand[];
  isUnmappedReported?: boolean;
  awaited?: AwaitedComment;
}

/**
 * Executes the next command in the comments of a pull request; the one after it follows when the revision has changed by this one. Commands are
 * executed in the order of writing, each once. What was edited is not executed: on hosts, users may edit comments of others.
 * Returns the command, if there was one: then the revision is reconciled again. Returns when to look again at one whose webhook may arrive.
 */
export async function applyCommands(
  context: CommandsContext,
  proposal: CommentedProposal,
): Promise<ExecutedCommand | ReconcileResult | undefined> {
  const { evaluation, pull, forge, state } = proposal;
  if (state.of === pull) return undefined;
  if (pull.hasComments === false) {
    state.of = pull;
    return undefined;
  }
  const begin = evaluation.record.steps.findLast(({ action }) => action === 'propose' || action === 'reject')?.at;
  if (begin === undefined) return undefined;
  const { shared } = proposal;
  for (let list = 0; list < MAX_LISTS; list += 1) {
    const since = state.since ?? (shared === undefined ? begin : pull.createdAt);
    const comments = await (shared?.read(since) ?? forge.comments(pull.number, since, MAX_COMMENTS, context.signal));
    // A host lists by time, which is another order while its clock is set back.
    const own = comments.filter(({ createdAt }) => Date.parse(createdAt) >= Date.parse(begin)).sort(byId);
    const executed = await executeFirst(context, proposal, own);
    if (executed !== undefined) return executed;
    const last = comments.at(-1)?.createdAt ?? since;
    if (comments.length < MAX_COMMENTS || Date.parse(last) <= Date.parse(since)) break;
    state.since = last;
  }
  state.of = pull;
  return undefined;
}

async function executeFirst(
  context: CommandsContext,
  proposal: CommentedProposal,
  comments: readonly Comment[],
): Promise<ExecutedCommand | ReconcileResult | undefined> {
  const { object, evaluation, review, pull, seen, state, forge } = proposal;
  const source = pull.url;
  const { shared } = proposal;
  const isFirst = shared === undefined || shared.names[0] === object.metadata.name;
  const asShown = (comment: Comment) => context.requests?.isAsWritten(proposal.repository, comment);
  const written = { forge, asShown };
  for (const comment of comments) {
    if (!/^\d{1,30}$/.test(comment.id)) continue;
    const parsed = parseCommand(comment.body, shared?.names);
    if (parsed === undefined || isExecuted(evaluation.record.commands, comment)) continue;
    const { target } = parsed;
    const isAboutNone = target === undefined && ('problem' in parsed || parsed.command.verb === 'why');
    if (target === undefined ? isAboutNone && !isFirst : target !== object.metadata.name) continue;
    if (isEdited(comment)) continue;
    const approver = await approverAt(proposal.forge, review, comment.author, context.signal);
    if (approver === undefined) {
      if (isFirst) await reportUnmapped(context, proposal);
      continue;
    }
    const authorship = hasEffect(parsed) ? await authorshipOf(comment, written, context.signal) : 'author';
    if (authorship === 'edited') continue;
    const waitMs = authorship === 'unknown' ? waitFor(state, comment, context.clock.monotonic()) : undefined;
    if (waitMs !== undefined) return { requeueAfter: waitMs, reason: 'the webhook of a comment may still arrive' };
    const [line = ''] = comment.body.split('\n', 1);
    if (!(await isUnchanged(context, proposal))) return undefined;
    const requested = {
      key: keyOf(object),
      repository: proposal.repository,
      evaluation,
      review,
      source,
      parsed,
      line,
      comment,
      actor: approver.actor,
      seen,
      isShared: shared !== undefined,
      isAuthorKnown: authorship === 'author',
    };
    try {
      const executed = await runCommand(context, requested);
      if (shared === undefined) await reply(context, proposal, [...entriesOf(proposal), executed]);
      else shared.note(executed);
      return executed;
    } catch (error) {
      // Another process was first; the record is read again with the next change.
      if (!isSluiceError(error, 'AlreadyExists')) throw error;
    }
  }
  return undefined;
}

/** Reads what decides once more: the pull request, and the revision with its policies. */
async function isUnchanged(
  { store, signal }: CommandsContext,
  { object, evaluation, review, pull, forge, shared }: CommentedProposal,
): Promise<boolean> {
  const { state, base, head } = await forge.get(pull.number, signal);
  if (state !== 'open' || base.branch !== pull.base.branch || head.branch !== pull.head.branch) return false;
  // The branch is not that of the proposal, and shows what its head has.
  if (shared !== undefined && head.commit !== pull.head.commit) return false;
  const { content, policy } = await store.evaluate(keyText(keyOf(object)));
  return content.content === evaluation.content.content && isDeepStrictEqual(policy.review, review);
}

/** Writes the reply that the record requires, if it is not what was written last: also what a process has not written before its end. */
export async function updateReply(
  context: Pick<CommandsContext, 'events' | 'signal' | 'store'>,
  proposal: CommentedProposal,
  explanation: Explanation,
): Promise<void> {
  await reply(context, proposal, entriesOf(proposal), explanation);
}

function entriesOf({ evaluation: { record }, pull }: CommentedProposal): readonly ExecutedCommand[] {
  return executedIn(record.commands, pull.url);
}

async function reply(
  context: Pick<CommandsContext, 'events' | 'signal' | 'store'>,
  proposal: CommentedProposal,
  entries: readonly ExecutedCommand[],
  explanation?: Explanation,
): Promise<void> {
  if (entries.length === 0) return;
  proposal.state.executed = entries;
  const text = describeCommands(entries.slice(-5), explanation);
  if (proposal.state.reply === text) return;
  // A failure can follow the effect.
  delete proposal.state.reply;
  if (await writeComment(context, proposal, REPLY, text)) proposal.state.reply = text;
}

/** One reply for each pull request, without anything of the comment: users could make Sluice write whatever they like, or often. */
async function reportUnmapped(context: CommandsContext, proposal: CommentedProposal): Promise<void> {
  if (proposal.state.isUnmappedReported === true) return;
  await writeComment(context, proposal, UNMAPPED, describeUnmapped(proposal.review.policy));
  proposal.state.isUnmappedReported = true;
}
