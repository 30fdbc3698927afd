import type { Condition } from '../../../../kptfile-schema/index.ts';
import { canonicalJson } from '../../../foundation/text/canonical-json.ts';
import type { RequestContext } from '../../../resource/object/request-context.ts';
import {
  bindInputs,
  CONTENT_INPUT,
  defaultInputs,
  type InputReference,
  type PackageInputs,
} from '../content/inputs.ts';
import {
  type ExternalFact,
  emptyRecord,
  type RevisionRecord,
  type Verdict,
  verdictOf,
  verdictsByType,
} from '../record/record.ts';

/** A condition as its issuer sets it. */
export interface IssuedCondition extends Condition {
  /** Inputs; by default the object in the type, else the content. */
  readonly inputs?: readonly InputReference[];
  /** The facts from outside of the package that it rests on. */
  readonly external?: readonly ExternalFact[];
  /** A policy pins the functions of the package that issue it. */
  readonly pinned?: boolean;
}

export type Issuer = NonNullable<Verdict['issuers']>[number];

export interface VerdictOptions {
  /** Renews the time of the verdict even if it is otherwise unchanged. */
  readonly renew?: boolean;
  /** The issuers on whose behalf the actor sets it, where that is not the actor. */
  readonly issuers?: readonly Issuer[];
  readonly pinned?: boolean;
  /** A policy binds the type to all of the package. */
  readonly wholeContent?: boolean;
}

/** Issues the conditions that result from rendering. */
export const RENDER_ACTOR = 'controller:render';
/**
 * The condition that kpt writes into the Kptfile of a successfully rendered package: a fact, not a verdict of an actor.
 */
export const RENDERED_TYPE = 'Rendered';

/** Returns the condition as in a Kptfile. */
export function plainCondition({ type, status, reason, message }: IssuedCondition): Condition {
  return {
    ...{ type, status },
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
  };
}

/** The actor of conditions in a plain push. */
export const PUSH_ACTOR = 'push';

/**
 * Binds a condition to the current inputs and adds it to the record. The same condition for the same inputs by the same issuer changes
 * nothing, so that affirming costs no commit; by another issuer, whom a policy may require, it does. With `renew` its time is always
 * renewed, for verdicts that expire.
 */
export function issueVerdict(
  record: RevisionRecord,
  given: IssuedCondition,
  inputs: PackageInputs,
  context: RequestContext,
  at: string,
  options: VerdictOptions = {},
): RevisionRecord {
  const before = verdictOf(record, given.type);
  const verdict = issuedVerdict(before, given, inputs, context, at, options);
  if (verdict === before) return record;
  return withVerdicts(record, [...record.verdicts.filter((other) => other.type !== given.type), verdict]);
}

/** Returns the verdict of a condition: the previous one if nothing differs. */
function issuedVerdict(
  before: Verdict | undefined,
  given: IssuedCondition,
  inputs: PackageInputs,
  context: RequestContext,
  at: string,
  { renew = false, issuers, pinned, wholeContent = false }: VerdictOptions = {},
): Verdict {
  // A verdict without inputs could never become stale.
  const named = given.inputs?.length ? given.inputs : defaultInputs(given.type, inputs, wholeContent);
  const references = wholeContent ? [...named, CONTENT_INPUT] : named;
  const bound = bindInputs(references, inputs);
  const affirmed =
    before !== undefined &&
    sameCondition(before, given) &&
    sameInputs(before.inputs, bound) &&
    canonicalJson([before.external ?? [], before.issuers ?? [], before.pinned ?? false]) ===
      canonicalJson([given.external ?? [], issuers ?? [], pinned ?? false]);
  if (affirmed && !renew && sameIssuer(before, context)) return before;
  return {
    type: given.type,
    status: given.status,
    ...(given.reason === undefined ? {} : { reason: given.reason }),
    ...(given.message === undefined ? {} : { message: given.message }),
    inputs: bound,
    ...(given.external === undefined || given.external.length === 0 ? {} : { external: [...given.external] }),
    by: context.actor.name,
    ...(issuers === undefined ? {} : { issuers: [...issuers] }),
    ...(pinned === true ? { pinned } : {}),
    ...(context.actor.groups === undefined ? {} : { groups: [...context.actor.groups] }),
    face: context.face,
    at,
    since: before?.status === given.status ? before.since : at,
  };
}

export function withdrawVerdict(record: RevisionRecord, type: string): RevisionRecord {
  const kept = record.verdicts.filter((verdict) => verdict.type !== type);
  return kept.length === record.verdicts.length ? record : withVerdicts(record, kept);
}

/**
 * Computes the record at a draft's tip. Every condition that a later push added or changed counts as issued by that push for
 * its content; unchanged conditions keep their verdicts, which may now be stale. A record is missing for a commit of Sluice
 * itself only if it was lost; then no verdict is inferred.
 */
export function recordAfterPush(
  record: RevisionRecord | undefined,
  tip: { readonly commit: string; readonly madeBySluice: boolean; readonly time: string },
  conditions: ReadonlyMap<string, Condition>,
  inputs: PackageInputs,
): RevisionRecord {
  if (record?.commit === tip.commit) return record;
  const carried: RevisionRecord = { ...(record ?? emptyRecord(tip.commit)), commit: tip.commit };
  // The record of a commit of Sluice was lost, and with it the issuers and inputs of its conditions.
  if (record === undefined && tip.madeBySluice) return carried;
  return syncVerdicts(carried, { conditions }, inputs, { actor: { name: PUSH_ACTOR }, face: 'git' }, tip.time);
}

/** The conditions of a Kptfile as a caller or a push wrote it. */
export interface WrittenConditions {
  readonly conditions: ReadonlyMap<string, Condition>;
  /** Those of the Kptfile before, where that is known. */
  readonly known?: ReadonlyMap<string, Condition> | undefined;
  /** True for those that the writer does not issue: changed ones have no verdict. */
  readonly unproven?: (type: string) => boolean;
  /** The types that policies bind to all of the package. */
  readonly bindsContent?: (type: string) => boolean;
}

/**
 * Updates the verdicts for a written Kptfile: changed conditions count as issued by the writer, removed ones are withdrawn,
 * unchanged ones keep their verdicts. A condition without a verdict that stays unchanged does not count as issued by the writer.
 */
export function syncVerdicts(
  record: RevisionRecord,
  { conditions, known, unproven = () => false, bindsContent = () => false }: WrittenConditions,
  inputs: PackageInputs,
  context: RequestContext,
  at: string,
): RevisionRecord {
  // Linear in verdicts and conditions: both come from Git, where their number is whatever was pushed.
  const next = new Map([...verdictsByType(record.verdicts)].filter(([type]) => conditions.has(type)));
  let changed = next.size < record.verdicts.length;
  for (const [type, condition] of conditions) {
    const old = known?.get(type);
    if (old !== undefined && sameCondition(old, condition)) continue;
    const before = next.get(type);
    if (before !== undefined && sameCondition(before, condition)) continue;
    const wholeContent = bindsContent(type);
    if (!unproven(type)) next.set(type, issuedVerdict(before, condition, inputs, context, at, { wholeContent }));
    else if (!next.delete(type)) continue;
    changed = true;
  }
  return changed ? withVerdicts(record, [...next.values()]) : record;
}

/** Without the verdicts that a push has issued, of these types or of all. */
export function withoutPushes(record: RevisionRecord, types?: ReadonlySet<string>): RevisionRecord {
  const isLeft = ({ by, face, type }: Verdict) => by !== PUSH_ACTOR || face !== 'git' || types?.has(type) === false;
  return { ...record, verdicts: record.verdicts.filter(isLeft) };
}

function withVerdicts(record: RevisionRecord, verdicts: readonly Verdict[]): RevisionRecord {
  return { ...record, verdicts: [...verdicts].sort((a, b) => (a.type < b.type ? -1 : 1)) };
}

interface Statement {
  readonly status: string;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
}

export function sameCondition(a: Statement, b: Statement): boolean {
  return a.status === b.status && (a.reason ?? '') === (b.reason ?? '') && (a.message ?? '') === (b.message ?? '');
}

function sameIssuer(verdict: Verdict, context: RequestContext): boolean {
  return (
    verdict.by === context.actor.name &&
    verdict.face === context.face &&
    JSON.stringify(verdict.groups ?? []) === JSON.stringify(context.actor.groups ?? [])
  );
}

function sameInputs(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}
