import { z } from 'zod';
import { messageOf, SluiceError } from '../../../foundation/sluice-error.ts';
import type { RequestContext } from '../../../resource/object/request-context.ts';
import { sameValue } from '../../../resource/object/same-value.ts';
import {
  formatStatement,
  MAX_STATEMENT_LENGTH,
  payloadOf,
  type SignedPayload,
  type SignedStatement,
  type StatementHead,
  splitMessage,
  statementDigest,
  statementExcess,
  statementHeadSchema,
} from '../../trust/statement/statement.ts';
import { listOf, mapOf } from '../../trust/statement/strict-schemas.ts';
import { executedCommandsSchema } from './executed-commands.ts';
import { lastReviewSchema } from './last-reviews.ts';

/**
 * Data of a revision that must be in Git but has no field in the Kptfile. It is the body of a commit under the record ref:
 * the subject line contains the action, the parent is the previous record, so that `git log` of the ref is the audit trail.
 */
const status = z.enum(['True', 'False', 'Unknown']);

/** A fact from outside of the package that is a basis of a verdict, such as a review or the health of a deployment. */
const externalFactSchema = z.object({
  /** Source of the observation, such as the address of a host. */
  source: z.string(),
  /** Identifier at the source, such as the number of a review. */
  id: z.string(),
  /** Observed value. */
  value: z.string(),
  /** Time of the observation, RFC 3339. */
  time: z.string(),
});

export const verdictSchema = z.object({
  type: z.string(),
  status,
  reason: z.string().optional(),
  message: z.string().optional(),
  /** Inputs of the verdict, see inputs.ts: each reference with its digest at that time. */
  inputs: mapOf(z.string()),
  /** External facts that are its basis; they do not close its gate when they change. */
  external: listOf(externalFactSchema).optional(),
  by: z.string(),
  /** Set where functions of the package issued it: it counts as issued by all of these, who may have changed the functions. */
  issuers: listOf(z.object({ name: z.string(), groups: listOf(z.string()).optional(), face: z.string() })).optional(),
  /** Set where functions that a policy pins issued it: then `by` is its issuer, whichever users may change the package. */
  pinned: z.boolean().optional(),
  /** Groups of the issuer, so that a policy can still decide later whether it may issue this type. */
  groups: listOf(z.string()).optional(),
  face: z.string(),
  /** Time at which it was issued or last affirmed, RFC 3339. */
  at: z.string(),
  /** Since when the condition has had this status without a break. */
  since: z.string(),
});

export const stepSchema = z.object({
  action: z.string(),
  by: z.string(),
  face: z.string(),
  at: z.string(),
  /** The commit that the step was about. */
  commit: z.string().optional(),
  /** The digest of the content that was rejected; records of earlier versions have only the commit. */
  content: z.string().optional(),
  reason: z.string().optional(),
  /** Closed gates that did not prevent the step, because the repository does not enforce them. */
  gates: listOf(z.string()).optional(),
});

/** A person, or a plain push, that changed the content since the last published revision. */
export const contributorSchema = z.object({
  /** The actor; `push` for a push by an unknown person. */
  name: z.string(),
  groups: listOf(z.string()).optional(),
  face: z.string(),
  /** RFC 3339. */
  since: z.string(),
  /** The first commit of this contributor. */
  commit: z.string().optional(),
  /** Set where the Git host reported who pushed: its kind and the user there, `<provider>:<user>`. It issues no verdict. */
  attributedBy: z.string().optional(),
  /**
   * For `push`: the commits of unknown pushers, oldest first, for which the Git host may still report the pusher. Absent if not
   * all are known: then the pusher stays unknown. For a user from a report of the host: the commits of the report, which other
   * users may have pushed too.
   */
  commits: listOf(z.string()).optional(),
});

/** A user's approval of one content; it counts as long as the package has that content. */
export const approvalSchema = z.object({
  subject: z.string(),
  /** Content digest, and tree of the package, that were approved. */
  content: z.string(),
  tree: z.string(),
  /** RFC 3339. */
  at: z.string(),
  face: z.string(),
  /** Address of the evidence, such as that of a review. */
  evidence: z.string().optional(),
  /** Id of the review of the Git host that gave it; absent for other ways, and for records of earlier versions. */
  review: z.string().optional(),
  /** The groups of the user that quorums of policies named when it was given. */
  groups: listOf(z.string()).optional(),
  /**
   * All groups of the user when it was given, where it waits for others, for a rule or for a merge of the Git host: the right to approve is checked
   * again when it counts. Absent where they are not known.
   */
  allGroups: listOf(z.string()).optional(),
  /**
   * The commit that a merge of the Git host publishes: with this approval none was missing, all gates were open and no rule blocked it, and the
   * rules of the host reserve the main branch for merges.
   */
  mergeOf: z.string().optional(),
  /** When that was decided again, RFC 3339; absent while `at` is the time of the only decision. */
  decidedAt: z.string().optional(),
  /** Why it does not count any more. Others are removed; a decision for a merge stays, since a merge in spite of that is out of band. */
  withdrawn: z.string().optional(),
  /** The namespace in which it was given: rights are granted by namespace. Records of earlier versions have none. */
  namespace: z.string().optional(),
});

const recordSchema = z.object({
  version: z.literal(1),
  /** The request that wrote this record. `made` is the commit on the draft that it created, if any. */
  last: stepSchema.omit({ commit: true, gates: true }).extend({ made: z.string().optional() }).optional(),
  /** Tip of the draft that this record describes; another tip means that the branch was pushed since. */
  commit: z.string(),
  verdicts: listOf(verdictSchema),
  /** Lifecycle steps, oldest first, the last 50. */
  steps: listOf(stepSchema),
  /**
   * Users who changed the content since the last published revision, regardless of the controllers that carried it
   * forward.
   */
  contributors: listOf(contributorSchema).optional(),
  approvals: listOf(approvalSchema).optional(),
  /**
   * Gates that were required when the revision was proposed; they stay required until it is rejected or published. `lost` if the
   * record that contained them was removed or replaced. Also the number of required approvals when the last insufficient approval
   * was recorded. `policies`, as `<namespace>/<name>`, required approvals of users when it was proposed: they still do, whatever a later write of
   * labels, owners or the Kptfile lets them select.
   */
  proposal: z
    .object({
      gates: listOf(z.string()),
      lost: z.boolean().optional(),
      approvalsNeeded: z.int().optional(),
      policies: listOf(z.string()).optional(),
    })
    .optional(),
  /** The last reviews of users who had approved before: when one of them is deleted, no earlier one of its user counts again. */
  lastReviews: listOf(lastReviewSchema).optional(),
  /** Commands in comments of its pull request. */
  commands: executedCommandsSchema.optional(),
  /** The published revision that this one was created from, and its content. */
  source: z.object({ kind: z.string(), name: z.string(), commit: z.string(), content: z.string() }).optional(),
  /**
   * The commit of the main branch that the draft was last based on, and the tree of the package that its content is derived from: that of
   * the revision that it was copied from, or of the main branch when an edit there was merged. Without a tree, of none. Absent for a pushed
   * draft: then Git's merge base counts. `derivedFrom`: what it was derived from before Sluice based a proposal on a later publication, as it was
   * proposed.
   */
  base: z.object({ commit: z.string(), tree: z.string().optional(), derivedFrom: z.string().optional() }).optional(),
  /** The task that created the revision, in the form of Porch. */
  task: z.unknown().optional(),
  /** The content at which pipeline and resolvers last settled, and which resolvers had claimed the package. */
  settled: z.object({ content: z.string(), resolvers: listOf(z.string()), at: z.string() }).optional(),
  /** Commits of controllers in the hour that began at `since`. */
  budget: z.object({ since: z.string(), commits: z.number().int() }).optional(),
  labels: mapOf(z.string()).optional(),
  annotations: mapOf(z.string()).optional(),
  ownerReferences: listOf(mapOf(z.unknown())).optional(),
  /** Keys of labels, and uids of owners, that a user wrote who may not approve: because of them no controller approves the revision. */
  unapproved: z.object({ labels: listOf(z.string()), owners: listOf(z.string()) }).optional(),
  finalizers: listOf(z.string()).optional(),
  deletionTimestamp: z.string().optional(),
  createdAt: z.string().optional(),
  /** Of the last record of a published revision that was deleted: its version, `v<N>`. */
  deleted: z.string().optional(),
  /** Of a record that was written for a publication: its version, `v<N>`. Such a record is none of a draft with this workspace. */
  published: z.string().optional(),
  /** Time of the first record of the draft, by the server's clock, RFC 3339. */
  recordedAt: z.string().optional(),
});

export type Verdict = Readonly<z.infer<typeof verdictSchema>>;
export type ExternalFact = Readonly<z.infer<typeof externalFactSchema>>;
export type LifecycleStep = Readonly<z.infer<typeof stepSchema>>;
export type Contributor = Readonly<z.infer<typeof contributorSchema>>;
export type Approval = Readonly<z.infer<typeof approvalSchema>>;
export type RevisionRecord = Readonly<z.infer<typeof recordSchema>>;

const recordStatementSchema = statementHeadSchema.extend({ kind: z.literal('record'), record: recordSchema });

/** The signed part of a record. */
export interface RecordStatement extends StatementHead {
  readonly kind: 'record';
  readonly record: RevisionRecord;
}

/** A record as it was read, before its signature is checked. */
export interface ReadRecord {
  readonly record: RevisionRecord;
  /** Undefined for a record that an earlier version wrote without a statement. */
  readonly signed: SignedStatement<RecordStatement> | undefined;
  /** Digest of the statement; undefined if there is none. */
  readonly digest: string | undefined;
}

const MAX_STEPS = 50;
/** Additional length for the signature and its delimiters. */
const MAX_SIGNATURE_LENGTH = 4096;

export function emptyRecord(commit: string): RevisionRecord {
  return { version: 1, commit, verdicts: [], steps: [] };
}

/**
 * The commit message that carries a signed record: a subject, the payload in one line, the signature as a trailer. Throws LimitExceeded
 * for a record that is too large to be kept.
 */
export function formatRecord(subject: string, signed: SignedPayload): string {
  const excess = statementExcess(signed.payload);
  if (excess !== undefined)
    throw new SluiceError(
      'LimitExceeded',
      `the record of the revision cannot be written: ${excess}; remove conditions, labels or annotations, or shorten their texts`,
    );
  return formatStatement(oneLine(subject), signed);
}

/** Reads a record from its commit message. Throws Corrupt with the reason if it is none. */
export function parseRecord(message: string): ReadRecord {
  const start = message.indexOf('\n\n');
  if (start === -1) throw new SluiceError('Corrupt', 'the record is not readable: the message has a subject line only');
  if (message.length - start > MAX_STATEMENT_LENGTH + MAX_SIGNATURE_LENGTH)
    throw new SluiceError('Corrupt', `the record is not readable: it has more than ${MAX_STATEMENT_LENGTH} characters`);
  const { payload, signature } = splitMessage(message);
  const excess = statementExcess(payload);
  if (excess !== undefined) throw new SluiceError('Corrupt', `the record is not readable: ${excess}`);
  try {
    const value: unknown = JSON.parse(payload);
    if ((value as { statement?: unknown } | null)?.statement === undefined) {
      return { record: recordSchema.parse(value), signed: undefined, digest: undefined };
    }
    const { record } = recordStatementSchema.parse(value);
    // The value as it was read: the signature covers fields that a later version added.
    const statement = value as RecordStatement;
    // Too deeply nested values cannot be encoded again, so they cannot have been signed, and must not fail a later
    // reader.
    const digest = statementDigest(payloadOf(statement));
    return { record, signed: { statement, signature }, digest };
  } catch (error) {
    throw new SluiceError('Corrupt', `the record is not readable: ${messageOf(error)}`, { cause: error });
  }
}

export function withStep(record: RevisionRecord, step: LifecycleStep): RevisionRecord {
  return { ...record, steps: [...record.steps, step].slice(-MAX_STEPS) };
}

/**
 * Returns the rejection of the current content, if it was rejected last. It applies to the content: a commit that changes only
 * conditions, or a push of the same files, does not lift it.
 */
export function rejectionOf(
  { steps }: RevisionRecord,
  { commit, content }: { readonly commit: string; readonly content: string },
): LifecycleStep | undefined {
  const last = steps.findLast(({ action }) => action !== 'push');
  if (last?.action !== 'reject') return undefined;
  return (last.content === undefined ? last.commit === commit : last.content === content) ? last : undefined;
}

/**
 * The approvals that count in a namespace. Namespaces that have registered the same repository share its records, and who may approve
 * in one of them need not have that right in the other.
 */
export function approvalsIn(
  { approvals = [] }: Pick<RevisionRecord, 'approvals'>,
  namespace: string | undefined,
): Approval[] {
  return approvals.filter((one) => one.namespace === undefined || one.namespace === namespace);
}

/** Approvals that count in other namespaces; see `EffectivePolicy.alsoApprovedIn`. */
export function approvalsElsewhere(
  { approvals = [] }: Pick<RevisionRecord, 'approvals'>,
  namespace: string | undefined,
): Approval[] {
  return approvals.filter((one) => one.namespace !== undefined && one.namespace !== namespace);
}

/** An approval with which a merge of the Git host publishes. */
export type Decision = Approval & { readonly mergeOf: string };

/** True for a decision that stands. One that was withdrawn approves nothing; a merge that was made by it is judged when it is read. */
export function isDecision(approval: Approval): approval is Decision {
  return approval.mergeOf !== undefined && approval.withdrawn === undefined;
}

/** An approval that does not count any more. */
export interface WithdrawnApproval {
  readonly approval: Approval;
  readonly why: string;
}

/** The record without these approvals; the same record where it has none of them. */
export function withWithdrawn(record: RevisionRecord, withdrawn: readonly WithdrawnApproval[]): RevisionRecord {
  const { approvals = [] } = record;
  let isChanged = false;
  const kept = approvals.flatMap((one) => {
    const found = withdrawn.find(({ approval }) => sameValue(approval, one));
    if (found === undefined) return [one];
    isChanged = true;
    return one.mergeOf === undefined ? [] : [{ ...one, withdrawn: found.why }];
  });
  return isChanged ? { ...record, approvals: kept } : record;
}

/** Adds the actor of a change of content. Controllers only process content of others, and are not contributors. */
export function withContributor(
  contributors: readonly Contributor[],
  { actor, face }: Pick<RequestContext, 'actor' | 'face'>,
  since: string,
  commit: string,
): Contributor[] {
  if (face === 'controller' || contributors.some(({ name }) => name === actor.name)) return [...contributors];
  const groups = actor.groups === undefined ? {} : { groups: [...actor.groups] };
  return [...contributors, { name: actor.name, ...groups, face, since, commit }];
}

/** The verdict on a type; a record has at most one for each. */
export function verdictOf(record: RevisionRecord | undefined, type: string): Verdict | undefined {
  return record === undefined ? undefined : verdictsByType(record.verdicts).get(type);
}

const byType = new WeakMap<readonly Verdict[], ReadonlyMap<string, Verdict>>();

/** The verdicts of a record by their type, made once for a list: gates and conditions look up theirs one by one. */
export function verdictsByType(verdicts: readonly Verdict[]): ReadonlyMap<string, Verdict> {
  let found = byType.get(verdicts);
  if (found === undefined) {
    const made = new Map<string, Verdict>();
    // Of several on one type, which only a forged record has, the first counts.
    for (const verdict of verdicts) if (!made.has(verdict.type)) made.set(verdict.type, verdict);
    byType.set(verdicts, made);
    found = made;
  }
  return found;
}

/** True if the record must outlive publication, which folds only verdicts and steps into the approval commit. */
export function hasObjectMetadata(record: RevisionRecord): boolean {
  return (
    Object.keys(record.labels ?? {}).length > 0 ||
    Object.keys(record.annotations ?? {}).length > 0 ||
    (record.ownerReferences ?? []).length > 0 ||
    (record.finalizers ?? []).length > 0
  );
}

/**
 * Removes control characters and line separators, which could forge further lines of a commit message or control a
 * terminal.
 */
export function oneLine(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ').trim();
}
