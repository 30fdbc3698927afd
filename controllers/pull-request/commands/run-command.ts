import { type ErrorCode, isSluiceError, type SluiceError } from '../../../src/foundation/sluice-error.ts';
import { isComputedType } from '../../../src/package/model/gates/ready-type.ts';
import { REVIEW_ACTOR, type ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import type { ExecutedCommand } from '../../../src/package/model/record/executed-commands.ts';
import { warnOfGateless } from '../../../src/package/plan/edit/issuer-rights.ts';
import { isMainRefused } from '../../../src/package/store/approve-by-merge.ts';
import type { RevisionEvaluation } from '../../../src/package/store/evaluate-revision.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { repositoryKind } from '../../../src/resource/kinds/porch/repository.ts';
import { keyText, type ObjectKey } from '../../../src/resource/object/object.ts';
import type { Actor, RequestContext } from '../../../src/resource/object/request-context.ts';
import { commitsWithContent } from '../reviews/same-content.ts';
import type { MayApprove } from '../rights.ts';
import { plainLine } from '../text/quote.ts';
import { unknownAuthorText } from './edited-comments.ts';
import type { Command, ParsedCommand } from './parse-command.ts';

export interface CommandContext {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'change' | 'evaluate' | 'find' | 'repositoryOf' | 'update'>;
  readonly mayApprove: MayApprove | undefined;
  readonly maySetConditions: MayApprove | undefined;
  readonly signal: AbortSignal;
}

/** A command by a user whom the policy maps. */
export interface RequestedCommand {
  readonly key: ObjectKey;
  readonly repository: ObjectKey;
  readonly evaluation: RevisionEvaluation;
  readonly review: ReviewPolicy;
  /** Address of the pull request. */
  readonly source: string;
  readonly parsed: ParsedCommand;
  /** Its first line. */
  readonly line: string;
  readonly comment: { readonly id: string; readonly url: string; readonly author: string; readonly createdAt: string };
  readonly actor: Actor;
  /** The content that the head of the pull request was seen with, and when it last changed until then, by the clock of the host. */
  readonly seen: { readonly content: string; readonly at: string } | undefined;
  /** Several proposals share the pull request. */
  readonly isShared: boolean;
  /** The author of the comment wrote its text, and no other user of the host. */
  readonly isAuthorKnown: boolean;
}

/** What the user, or a rule of the Git host, has to change; other failures are repeated. */
const FINAL: readonly ErrorCode[] = ['Refused', 'InvalidInput', 'LimitExceeded', 'Unsupported', 'PushRefused'];
const MAX_MESSAGE_CHARACTERS = 600;
const MAX_COMMAND_CHARACTERS = 200;

/**
 * Executes a command once: its record is written together with its effect, by the rights and rules of its subject. Returns the entry of the
 * record. Rejects with AlreadyExists if another process was first, and with other errors where it has to be repeated.
 */
export async function runCommand(context: CommandContext, wanted: RequestedCommand): Promise<ExecutedCommand> {
  const { store } = context;
  const { key, source, comment } = wanted;
  const entry = (outcome: ExecutedCommand['outcome'], message: string) => commandEntry(wanted, outcome, message);
  try {
    const refusal =
      'problem' in wanted.parsed ? wanted.parsed.problem : await refusalOf(context, wanted, wanted.parsed.command);
    if (refusal === undefined && 'command' in wanted.parsed)
      return await execute(context, wanted, wanted.parsed.command, entry);
    return await refuse(refusal ?? '');
  } catch (error) {
    if (!isSluiceError(error) || !FINAL.includes(error.code)) throw error;
    return await refuse(finalText(context, error, wanted));
  }

  async function refuse(message: string): Promise<ExecutedCommand> {
    const refused = entry('refused', message);
    await store.change(keyText(key), { command: { source, ...refused } }, ownRequest(comment.url));
    return refused;
  }
}

/** Where the main branch is reserved for merges, and these publish, a merge approves, and the rule stays as it is. */
function finalText(
  { store }: Pick<CommandContext, 'store'>,
  error: SluiceError,
  { parsed, review, evaluation: { revision } }: RequestedCommand,
): string {
  const isApprove = 'command' in parsed && parsed.command.verb === 'approve';
  const publishes = review.publishOn === 'merge' && isMainRefused(error, store.repositoryOf(revision));
  if (!isApprove || !publishes) return error.message;
  return `the Git host does not let Sluice push to the main branch; merge its pull request instead, which approves and publishes it. ${error.message}`;
}

/** A command with its result, in bounded length. */
export function commandEntry(
  { comment, actor, line }: Pick<RequestedCommand, 'comment' | 'actor' | 'line'>,
  outcome: ExecutedCommand['outcome'],
  message: string,
): ExecutedCommand {
  return {
    ...{ id: comment.id, url: comment.url, writtenAt: comment.createdAt, user: comment.author, subject: actor.name },
    command: plainLine(line, MAX_COMMAND_CHARACTERS),
    ...{ outcome, message: plainLine(message, MAX_MESSAGE_CHARACTERS) },
  };
}

/** Whether a command changes more than what Sluice shows. */
export function hasEffect(parsed: ParsedCommand): boolean {
  return 'command' in parsed && parsed.command.verb !== 'why' && parsed.command.verb !== 'rerun';
}

/** The roles that have the right to update a sub-resource of package revisions. */
const ROLES = { approval: 'sluice:approver', status: 'sluice:condition-issuer' } as const;

/** The reason for which a command is not tried; undefined if there is none. */
async function refusalOf(
  { client, store, mayApprove, maySetConditions, signal }: CommandContext,
  { key, repository: registered, evaluation, review, comment, actor, seen, isShared, isAuthorKnown }: RequestedCommand,
  command: Command,
): Promise<string | undefined> {
  const lacks = async (may: MayApprove | undefined, what: keyof typeof ROLES) =>
    may === undefined || (await may(actor, key, signal))
      ? undefined
      : `User "${actor.name}" may not update packagerevisions/${what} in this namespace; grant that right, as the ClusterRole ${ROLES[what]} has it, or change the policy`;
  if (command.verb === 'approve' || command.verb === 'set') {
    if (review.publishOn === 'approval')
      return `policy ${review.policy} has publishOn: approval, so that nothing on the host opens a gate or approves; use the command line`;
  }
  const { content } = evaluation.content;
  const isSeen = seen?.content === content && Date.parse(seen.at) < Date.parse(comment.createdAt);
  const isEffective = hasEffect({ command });
  // Another host can have taken over comments without what makes them count there, such as that they were edited.
  const repository = isEffective ? await client.find(repositoryKind, registered, { signal }) : undefined;
  if (Date.parse(comment.createdAt) < Date.parse(repository?.metadata.creationTimestamp ?? ''))
    return 'it was written before the Repository was registered; write the command again';
  if (isEffective && !isAuthorKnown) return unknownAuthorText(evaluation.revision.name, command);
  // Users can change which packages a pull request lists, also afterwards: what it showed is known only to the process that saw it.
  if (isEffective && !isSeen && isShared)
    return 'it is not known that this pull request showed the package as it is now when this comment was written; read its changes, and write the command again';
  if (command.verb === 'set') {
    if (isComputedType(command.type)) return `${command.type} cannot be set: Sluice computes it`;
    const { type, status } = command;
    const isClosed = status !== 'True' && evaluation.gates.some((gate) => gate.type === type && gate.state === 'Open');
    const { revision } = evaluation;
    if (!isClosed && store.repositoryOf(revision).refusals.isInMergeQueue(revision))
      return 'the pull request is in a merge queue, which would remove it for the commit of this condition; write the command again once it has left the queue';
    return lacks(maySetConditions, 'status');
  }
  if (command.verb === 'reject') return lacks(mayApprove, 'approval');
  if (command.verb !== 'approve') return undefined;
  const lacking = await lacks(mayApprove, 'approval');
  if (lacking !== undefined) return lacking;
  // What was pushed after the comment was not approved.
  if (isSeen) return undefined;
  const proposed = evaluation.record.steps.findLast(({ action }) => action === 'propose')?.commit;
  const { git } = store.repositoryOf(evaluation.revision);
  const same = await commitsWithContent(git, evaluation, proposed === undefined ? [] : [proposed]);
  return same.size > 0
    ? undefined
    : 'the package has changed since it was proposed, and it is not known that this comment was written after that; read the changes, and write the command again';
}

async function execute(
  { store }: CommandContext,
  { key, evaluation, source, comment, actor }: RequestedCommand,
  command: Command,
  entry: (outcome: ExecutedCommand['outcome'], message: string) => ExecutedCommand,
): Promise<ExecutedCommand> {
  const name = keyText(key);
  const { revision } = evaluation;
  const by = `comment ${comment.url} of ${plainLine(comment.author)}`;
  const request = (reason: string): RequestContext => ({ actor, face: 'api', reason });
  const done = (message: string) => {
    const made = entry('done', message);
    return { made, change: { command: { source, ...made } } };
  };
  switch (command.verb) {
    case 'approve': {
      const { made, change } = done('approved');
      const evidence = comment.url;
      await store.update(name, { action: 'approve', change, expectedCommit: revision.commit, evidence }, request(by));
      return made;
    }
    case 'reject': {
      const { made, change } = done('rejected');
      await store.update(name, { action: 'reject', change }, request(`${command.reason} (${by})`));
      return made;
    }
    case 'set': {
      const { type, status, message } = command;
      // The reply is recorded together with its effect, so that the warning has to be known before.
      const warnings: string[] = [];
      const gates = evaluation.gates.map((gate) => gate.type);
      warnOfGateless({ ...request(by), warn: (text) => warnings.push(text) }, key.name, gates, [type]);
      const { made, change } = done([`${type} is ${status}`, ...warnings].join('; '));
      const conditions = [{ type, status, reason: 'Comment', message: message === '' ? by : message }];
      await store.change(name, { ...change, conditions }, request(by));
      return made;
    }
    case 'why':
    case 'rerun': {
      const { made, change } = done(
        command.verb === 'why' ? 'see below' : 'reviews, resolvers of proposals and checks are evaluated again',
      );
      await store.change(name, change, ownRequest(comment.url));
      return made;
    }
  }
}

/** To record what has no other effect. */
function ownRequest(url: string): RequestContext {
  return { actor: { name: REVIEW_ACTOR }, face: 'controller', reason: `comment ${url}` };
}
