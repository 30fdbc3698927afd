import { z } from 'zod';
import { messageOf, SluiceError } from '../foundation/sluice-error.ts';

/**
 * What Git must keep about a revision that the Kptfile has no field for. It is the body of a commit under the record ref: the
 * subject line says what happened, the parent is the record before, so that `git log` of the ref is the audit trail.
 */
const status = z.enum(['True', 'False', 'Unknown']);

export const verdictSchema = z.object({
  type: z.string(),
  status,
  reason: z.string().optional(),
  message: z.string().optional(),
  /** What it was given for, see inputs.ts: reference to the digest that it had then. */
  inputs: z.record(z.string(), z.string()),
  by: z.string(),
  /** Groups of the giver, so that a policy can still tell later whether it may give this type. */
  groups: z.array(z.string()).optional(),
  face: z.string(),
  /** When it was given or last affirmed, RFC 3339. */
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
  reason: z.string().optional(),
  /** Gates that were closed and passed all the same, because the repository does not enforce them. */
  gates: z.array(z.string()).optional(),
});

const recordSchema = z.object({
  version: z.literal(1),
  /** The request that wrote this record. `made` is the commit on the draft that came with it, if one did. */
  last: stepSchema.omit({ commit: true, gates: true }).extend({ made: z.string().optional() }).optional(),
  /** Tip of the draft that this record speaks about; another tip means that someone pushed since. */
  commit: z.string(),
  verdicts: z.array(verdictSchema),
  /** Lifecycle steps, oldest first, the last 50. */
  steps: z.array(stepSchema),
  /** The published revision that this one was made from, and its content. */
  source: z.object({ kind: z.string(), name: z.string(), commit: z.string(), content: z.string() }).optional(),
  /** Porch's word for how the revision was made. */
  task: z.unknown().optional(),
  /** The content at which pipeline and resolvers last came to rest, and which resolvers had claimed the package. */
  settled: z.object({ content: z.string(), resolvers: z.array(z.string()), at: z.string() }).optional(),
  /** Commits of controllers in the hour that began at `since`. */
  budget: z.object({ since: z.string(), commits: z.number().int() }).optional(),
  labels: z.record(z.string(), z.string()).optional(),
  annotations: z.record(z.string(), z.string()).optional(),
  ownerReferences: z.array(z.record(z.string(), z.unknown())).optional(),
  finalizers: z.array(z.string()).optional(),
  deletionTimestamp: z.string().optional(),
  createdAt: z.string().optional(),
});

export type Verdict = Readonly<z.infer<typeof verdictSchema>>;
export type LifecycleStep = Readonly<z.infer<typeof stepSchema>>;
export type RevisionRecord = Readonly<z.infer<typeof recordSchema>>;

const MAX_STEPS = 50;
/** Characters of a record. Those of a Kptfile with the most conditions and of 50 steps fit; anyone who may push can write one. */
const MAX_RECORD_LENGTH = 1024 * 1024;

export function emptyRecord(commit: string): RevisionRecord {
  return { version: 1, commit, verdicts: [], steps: [] };
}

/** The commit message that carries a record. */
export function formatRecord(subject: string, record: RevisionRecord): string {
  const body = JSON.stringify(record);
  if (body.length > MAX_RECORD_LENGTH)
    throw new SluiceError(
      'LimitExceeded',
      `the record of the revision cannot be written: it would have ${body.length} characters, at most ${MAX_RECORD_LENGTH} are kept; remove conditions, labels or annotations, or shorten their texts`,
    );
  return `${oneLine(subject)}\n\n${body}\n`;
}

/** Reads a record from its commit message. Throws Corrupt with the reason if it is none. */
export function parseRecord(message: string): RevisionRecord {
  const start = message.indexOf('\n\n');
  if (start === -1) throw new SluiceError('Corrupt', 'the record is not readable: the message has a subject line only');
  if (message.length - start > MAX_RECORD_LENGTH + 3)
    throw new SluiceError('Corrupt', `the record is not readable: it has more than ${MAX_RECORD_LENGTH} characters`);
  try {
    return recordSchema.parse(JSON.parse(message.slice(start + 2)));
  } catch (error) {
    throw new SluiceError('Corrupt', `the record is not readable: ${messageOf(error)}`, { cause: error });
  }
}

export function withStep(record: RevisionRecord, step: LifecycleStep): RevisionRecord {
  return { ...record, steps: [...record.steps, step].slice(-MAX_STEPS) };
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

/** Control characters and line separators would let a text forge further lines of a commit message, or steer a terminal. */
export function oneLine(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ').trim();
}
