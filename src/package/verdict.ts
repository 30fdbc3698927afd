import type { Condition } from '../../kptfile-schema/index.ts';
import type { RequestContext } from './actor.ts';
import { bindInputs, defaultInputs, type InputReference, type PackageInputs } from './inputs.ts';
import { emptyRecord, type RevisionRecord, type Verdict, verdictOf } from './record.ts';

/** A condition as somebody gives it. */
export interface GivenCondition extends Condition {
  /** What it is given for; by default the object that the type names, else the content. */
  readonly inputs?: readonly InputReference[];
}

/** The actor under which conditions are kept that arrive by a plain push. */
export const PUSH_ACTOR = 'push';

/**
 * Binds a condition to the inputs at hand and puts it into the record. Giving the same condition again for the same inputs
 * changes nothing, so that affirming costs no commit.
 */
export function giveVerdict(
  record: RevisionRecord,
  given: GivenCondition,
  inputs: PackageInputs,
  context: RequestContext,
  at: string,
): RevisionRecord {
  const before = verdictOf(record, given.type);
  const bound = bindInputs(given.inputs ?? defaultInputs(given.type, inputs), inputs);
  if (before !== undefined && sameCondition(before, given) && sameInputs(before.inputs, bound)) return record;
  const verdict: Verdict = {
    type: given.type,
    status: given.status,
    ...(given.reason === undefined ? {} : { reason: given.reason }),
    ...(given.message === undefined ? {} : { message: given.message }),
    inputs: bound,
    by: context.actor.name,
    ...(context.actor.groups === undefined ? {} : { groups: [...context.actor.groups] }),
    face: context.face,
    at,
    since: before?.status === given.status ? before.since : at,
  };
  return withVerdicts(record, [...record.verdicts.filter((other) => other.type !== given.type), verdict]);
}

export function withdrawVerdict(record: RevisionRecord, type: string): RevisionRecord {
  const kept = record.verdicts.filter((verdict) => verdict.type !== type);
  return kept.length === record.verdicts.length ? record : withVerdicts(record, kept);
}

/**
 * The record as it stands for a draft's tip. If somebody pushed since it was written, every condition that the push added or
 * changed counts as given by that push for the content it brought; conditions that it left alone keep their verdicts, which may
 * now be stale. A record is missing for a commit of Sluice itself only if it was lost; then nothing is made up.
 */
export function recordAtTip(
  record: RevisionRecord | undefined,
  tip: { readonly commit: string; readonly madeBySluice: boolean; readonly time: string },
  conditions: ReadonlyMap<string, Condition>,
  inputs: PackageInputs,
): RevisionRecord {
  if (record?.commit === tip.commit) return record;
  let next: RevisionRecord = { ...(record ?? emptyRecord(tip.commit)), commit: tip.commit };
  for (const verdict of next.verdicts) {
    if (!conditions.has(verdict.type)) next = withdrawVerdict(next, verdict.type);
  }
  if (record === undefined && tip.madeBySluice) return next;
  const context: RequestContext = { actor: { name: PUSH_ACTOR }, face: 'git' };
  for (const condition of conditions.values()) {
    const before = verdictOf(next, condition.type);
    if (before === undefined || !sameCondition(before, condition)) {
      next = giveVerdict(next, condition, inputs, context, tip.time);
    }
  }
  return next;
}

function withVerdicts(record: RevisionRecord, verdicts: readonly Verdict[]): RevisionRecord {
  return { ...record, verdicts: [...verdicts].sort((a, b) => (a.type < b.type ? -1 : 1)) };
}

function sameCondition(a: Omit<Condition, 'type'>, b: Omit<Condition, 'type'>): boolean {
  return a.status === b.status && (a.reason ?? '') === (b.reason ?? '') && (a.message ?? '') === (b.message ?? '');
}

function sameInputs(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}
