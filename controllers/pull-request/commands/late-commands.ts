import type { Comment, Forge, PullRequest } from '../../../src/forge/forge.ts';
import type { ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import { publishedRecordOf } from '../../../src/package/model/record/commit-message.ts';
import { type ExecutedCommand, executedIn, isExecuted } from '../../../src/package/model/record/executed-commands.ts';
import { isPublished, type PackageRevision as Revision } from '../../../src/package/model/revision/package-revision.ts';
import type { ObjectKey } from '../../../src/resource/object/object.ts';
import { approverAt } from '../reviews/approver-at.ts';
import { type CommandState, MAX_COMMENTS, REPLY } from './apply-commands.ts';
import { describeCommands, describeSharedCommands, type NamedCommand } from './describe-commands.ts';
import { isEdited } from './edited-comments.ts';
import { parseCommand } from './parse-command.ts';
import { commandEntry } from './run-command.ts';

/** A proposal that has ended, with its pull request. */
export interface EndedProposal {
  readonly key: ObjectKey;
  /** The revision as it is now; undefined if it was deleted. */
  readonly now: Revision | undefined;
  /** As it was while it was proposed, where this process has followed it. */
  readonly before: Revision | undefined;
  readonly review: ReviewPolicy;
  readonly pull: PullRequest;
  readonly forge: Forge;
  /** What this process has kept of its commands; undefined if it did not follow the proposal. */
  readonly commands: CommandState | undefined;
}

/**
 * Replies to commands that come too late: those that were read by no process before the proposal has ended, and the one that ended it if a process
 * ended before it replied. Nothing is executed. The same comments have the same reply, so that it is written once.
 */
export async function replyToLate(ended: EndedProposal, signal: AbortSignal): Promise<void> {
  const { key, now, before, pull, forge, commands } = ended;
  if (pull.hasComments === false) return;
  const record = recordOf(now ?? before);
  const begin = record?.steps.findLast(({ action }) => action === 'propose')?.at;
  if (begin === undefined) return;
  const end = record?.steps.findLast(({ action }) => action === 'approve' || action === 'reject');
  const state =
    now === undefined
      ? 'was deleted'
      : isPublished(now)
        ? `is ${now.lifecycle} already`
        : 'is a draft again; propose it first';
  const replied = commands?.executed ?? [];
  const known = lastOf([replied, ...[before, now].map((one) => executedIn(one?.record?.commands, pull.url))]);
  const isIn = (entries: readonly ExecutedCommand[], comment: Comment) =>
    isExecuted({ source: pull.url, entries }, comment);
  // The record of a draft has all that were executed; a publication has none.
  const isKnown = commands !== undefined || (now !== undefined && !isPublished(now));
  const entries: ExecutedCommand[] = [];
  for await (const { comment, about } of commandsIn(ended, begin, signal)) {
    if (isIn(replied, comment)) continue;
    const outcome = outcomeIn(now ?? before, comment);
    if (outcome === undefined && isIn(known, comment)) continue;
    const isLate = isKnown || (end !== undefined && Date.parse(comment.createdAt) > Date.parse(end.at));
    if (outcome !== undefined) entries.push(commandEntry(about, 'done', outcome));
    else if (isLate) entries.push(commandEntry(about, 'refused', `${key.name} ${state}`));
  }
  if (entries.length === 0) return;
  // What another process has replied is nowhere but in its comment, so that no reply is written twice.
  const reply = (await forge.findComment(pull.number, REPLY, signal))?.body ?? '';
  if (entries.every((entry) => reply.includes(lastLine(describeCommands([entry], undefined))))) return;
  const others = known.filter(({ id }) => entries.every((entry) => entry.id !== id));
  await forge.setComment(pull.number, REPLY, describeCommands([...others, ...entries].slice(-5), undefined), signal);
}

/**
 * The same for a pull request that several package revisions shared, and that ends: for commands that were not executed. `executed` has those that
 * were, as far as this process knows; `isFollowed`: these are all. `ended` are the revisions as they are now.
 */
export async function replyToSharedLate(
  { review, pull, forge }: Pick<EndedProposal, 'review' | 'pull' | 'forge'>,
  executed: readonly NamedCommand[],
  { ended, isFollowed }: { readonly ended: readonly NamedRevision[]; readonly isFollowed: boolean },
  signal: AbortSignal,
): Promise<void> {
  if (pull.hasComments === false) return;
  const last = executed.reduce((most, { executed: { id } }) => (BigInt(id) > most ? BigInt(id) : most), 0n);
  const late: NamedCommand[] = [];
  for await (const { comment, about } of commandsIn({ review, pull, forge }, pull.createdAt, signal)) {
    if (executed.some((one) => one.executed.id === comment.id)) continue;
    const done = ended.flatMap(({ name, revision }): NamedCommand[] => {
      const outcome = outcomeIn(revision, comment);
      return outcome === undefined ? [] : [{ name, executed: commandEntry(about, 'done', outcome) }];
    });
    const isLate = isFollowed
      ? BigInt(comment.id) > last
      : Date.parse(comment.createdAt) > Date.parse(pull.closedAt ?? pull.updatedAt);
    const message = 'no package is proposed in this pull request any more';
    if (done.length > 0) late.push(...done);
    else if (isLate) late.push({ name: undefined, executed: commandEntry(about, 'refused', message) });
  }
  if (late.length > 0)
    await forge.setComment(pull.number, REPLY, describeSharedCommands([...executed, ...late]), signal);
}

export interface NamedRevision {
  readonly name: string;
  readonly revision: Revision | undefined;
}

function recordOf(revision: Revision | undefined) {
  if (revision === undefined) return undefined;
  return isPublished(revision) ? publishedRecordOf(revision.tip.facts) : revision.record;
}

/** What a command did by which a proposal was approved or rejected, also if its reply, or the response to its request, was lost. */
function outcomeIn(revision: Revision | undefined, { url }: Comment): 'approved' | 'rejected' | undefined {
  const record = recordOf(revision);
  if (record?.approvals?.some(({ evidence }) => evidence === url) === true) return 'approved';
  const end = record?.steps.findLast(({ action }) => action === 'approve' || action === 'reject');
  return end?.reason?.includes(`(comment ${url} of `) === true ? 'rejected' : undefined;
}

/** Of several states of the same list the last one. */
function lastOf(lists: readonly (readonly ExecutedCommand[])[]): readonly ExecutedCommand[] {
  const idOf = (list: readonly ExecutedCommand[]) => BigInt(list.at(-1)?.id ?? -1);
  return lists.reduce((a, b) => (idOf(b) > idOf(a) ? b : a), []);
}

/** The commands in comments of listed users since a time. */
async function* commandsIn(
  { review, pull, forge }: Pick<EndedProposal, 'review' | 'pull' | 'forge'>,
  since: string,
  signal: AbortSignal,
) {
  for (const comment of await forge.comments(pull.number, since, MAX_COMMENTS, signal)) {
    if (!/^\d{1,30}$/.test(comment.id) || isEdited(comment)) continue;
    if (Date.parse(comment.createdAt) < Date.parse(since) || parseCommand(comment.body) === undefined) continue;
    const approver = await approverAt(forge, review, comment.author, signal);
    const [line = ''] = comment.body.split('\n', 1);
    if (approver !== undefined) yield { comment, about: { comment, actor: approver.actor, line } };
  }
}

function lastLine(text: string): string {
  return text.slice(text.lastIndexOf('\n') + 1);
}
