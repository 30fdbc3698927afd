import { gatesOf, type KptfileEdit } from '../../kptfile-schema/index.ts';
import { timestamp } from '../../src/foundation/time/clock.ts';
import { needsRenewal } from '../../src/package/model/gates/gates.ts';
import { type IssuedCondition, issueVerdict } from '../../src/package/model/gates/verdict.ts';
import { bindsContent, type EffectivePolicy, refuseIssuer } from '../../src/package/model/policy/policy.ts';
import { verdictOf } from '../../src/package/model/record/record.ts';
import type { RevisionChange } from '../../src/package/plan/edit/change.ts';
import { issueRendered } from '../../src/package/plan/edit/render.ts';
import type { Rendering } from '../../src/package/plan/ports/renderer.ts';
import type { RevisionEvaluation } from '../../src/package/store/evaluate-revision.ts';
import type { EntryPoint } from '../../src/resource/object/request-context.ts';
import type { RunOutcome } from './run-resolvers.ts';
import { RENDERER } from './run-state.ts';
import { isMarked, settlementOf } from './settlement.ts';

/** The actor of changes with parts of several resolvers, of the renderer or of the controller itself. */
export const CONTROLLER_ACTOR = 'controller:revision';

/** The writes of a run, as one change by one actor. */
export interface Plan {
  /** Undefined if there is no change. */
  readonly change: RevisionChange | undefined;
  readonly actor: string;
  /** The resolvers with a part in the change, in the order of their names. */
  readonly contributors: readonly string[];
  /** Conditions that a policy does not permit the actor to issue, one sentence each. They are not part of the change. */
  readonly refused: readonly string[];
}

export function resolverActor(name: string): string {
  return name === RENDERER || name === '' ? CONTROLLER_ACTOR : `resolver:${name}`;
}

/** Compares the outcome of a run with the state in Git. `now` in milliseconds since the epoch. */
export function planRoundWrite(evaluation: RevisionEvaluation, outcome: RunOutcome, now: number): Plan {
  const parts = outcome.unsettled === undefined ? partsOf(evaluation, outcome, now) : new Parts();
  const own = outcome.partial ? undefined : settlementOf(evaluation, outcome);
  for (const given of own?.issued ?? [])
    if (needsIssuing(evaluation, outcome, given, '', now)) parts.condition(given, '');
  for (const type of own?.withdraw ?? []) parts.withdraw(type, '');

  const contributors = [...parts.contributors].sort();
  const { actor, allowed } = chooseActor(evaluation.policy, parts, contributors);
  const refused: string[] = [...outcome.refused];
  const permitted = (type: string): boolean => {
    const why = allowed(type);
    if (why !== undefined) refused.push(`${actor}: ${why}`);
    return why === undefined;
  };
  const conditions = parts.conditions.filter(({ type }) => permitted(type));
  const withdraw = parts.withdrawn.filter(permitted);
  const settled = refused.length === 0 ? settledBy(evaluation, outcome) : undefined;
  const { rendering } = parts;
  const empty =
    conditions.length + withdraw.length + parts.files.size + parts.gates.length === 0 && isEmptyRendering(rendering);
  const change: RevisionChange = {
    files: parts.files,
    kptfile: parts.gates.map((conditionType): KptfileEdit => ({ op: 'addGate', conditionType })),
    conditions,
    withdraw,
    ...(outcome.rendered ? { rendering } : {}),
    ...(settled === undefined ? {} : { settled }),
    expectedCommit: evaluation.revision.commit,
  };
  return { change: empty && settled === undefined ? undefined : change, actor, contributors, refused };
}

/** True if no single actor may make the whole change although one may make each of its parts. */
export function mustSplit(policy: EffectivePolicy, outcome: RunOutcome, plan: Plan): boolean {
  if (plan.refused.length === 0 || plan.contributors.length < 2) return false;
  return [...outcome.contributions.conditions].some(
    ([type, { by }]) =>
      by !== RENDERER && mayIssue(policy, type, resolverActor(by)) && !mayIssue(policy, type, plan.actor),
  );
}

/** One line for an event. */
export function describePlan({ change, actor }: Plan): string {
  const given = [...(change?.rendering?.conditions ?? []), ...(change?.conditions ?? [])];
  const summary = given.map(({ type, status }) => `${type} is ${status}`);
  const files = [...(change?.files?.keys() ?? [])];
  if (files.length > 0) summary.push(`wrote ${files.join(', ')}`);
  return `${actor}: ${summary.join(', ') || 'conditions or gates changed'}`;
}

class Parts {
  readonly files = new Map<string, Buffer | null>();
  readonly conditions: IssuedCondition[] = [];
  readonly withdrawn: string[] = [];
  readonly gates: string[] = [];
  readonly contributors = new Set<string>();
  /** The result of the renderer without its edits. */
  rendering: Rendering = { kptfile: [] };

  condition(given: IssuedCondition, by: string): void {
    this.conditions.push(given);
    this.contributors.add(by);
  }

  withdraw(type: string, by: string): void {
    this.withdrawn.push(type);
    this.contributors.add(by);
  }
}

function partsOf(evaluation: RevisionEvaluation, outcome: RunOutcome, now: number): Parts {
  const parts = new Parts();
  const { content, revision } = evaluation;
  const { contributions } = outcome;
  const { files, conditions, kptfile } = outcome.package.subject;
  for (const path of outcome.package.changedSince(content.files)) {
    parts.files.set(path, files.get(path) ?? null);
    for (const by of contributions.files.get(path) ?? []) parts.contributors.add(by);
  }
  const rendered = { conditions: [] as IssuedCondition[], withdraw: [] as string[] };
  for (const [type, { by, given }] of contributions.conditions) {
    if (!conditions.has(type) || !needsIssuing(evaluation, outcome, given, by, now)) continue;
    if (by === RENDERER) rendered.conditions.push(given);
    else parts.condition(given, by);
  }
  const written = new Set(revision.kptfile?.status?.conditions?.map(({ type }) => type));
  for (const [type, by] of contributions.withdrawn) {
    if (!written.has(type) || conditions.has(type)) continue;
    if (by === RENDERER) rendered.withdraw.push(type);
    else parts.withdraw(type, by);
  }
  parts.rendering = { kptfile: contributions.kptfile, ...rendered };
  if (!isEmptyRendering(parts.rendering)) parts.contributors.add(RENDERER);
  const gates = revision.kptfile === undefined ? [] : gatesOf(revision.kptfile);
  for (const type of gatesOf(kptfile)) {
    if (gates.includes(type)) continue;
    parts.gates.push(type);
    parts.contributors.add(contributions.gates.get(type) ?? '');
  }
  return parts;
}

/**
 * False if this resolver, or this controller on its behalf, is already recorded as issuer of this condition for the inputs as the run
 * leaves them. Either issuer counts, so that the number of contributors of a commit makes no difference.
 */
function needsIssuing(
  evaluation: RevisionEvaluation,
  outcome: RunOutcome,
  given: IssuedCondition,
  by: string,
  now: number,
): boolean {
  const { record, policy } = evaluation;
  const verdict = verdictOf(record, given.type);
  if (verdict === undefined) return true;
  if (needsRenewal(policy, record, given.type, 'controller', timestamp(now))) return true;
  if (by === RENDERER) return issueRendered(record, given, outcome.package.inputs, timestamp(now), policy) !== record;
  if (![resolverActor(by), CONTROLLER_ACTOR].includes(verdict.by)) return true;
  const issuer = { name: verdict.by, ...(verdict.groups === undefined ? {} : { groups: verdict.groups }) };
  const face = verdict.face as EntryPoint;
  const isRefused = refuseIssuer(policy, given.type, issuer, face) !== undefined;
  if (face !== 'controller' || isRefused) return true;
  const wholeContent = bindsContent(policy, given.type);
  const context = { actor: issuer, face };
  return issueVerdict(record, given, outcome.package.inputs, context, timestamp(now), { wholeContent }) !== record;
}

function chooseActor(policy: EffectivePolicy, parts: Parts, contributors: readonly string[]) {
  const types = [...parts.conditions.map(({ type }) => type), ...parts.withdrawn];
  const [first] = contributors;
  const own = contributors.length === 1 && first !== undefined ? resolverActor(first) : CONTROLLER_ACTOR;
  const refusals = (actor: string) => types.filter((type) => !mayIssue(policy, type, actor)).length;
  const actor = refusals(own) <= refusals(CONTROLLER_ACTOR) ? own : CONTROLLER_ACTOR;
  return { actor, allowed: (type: string) => refuseIssuer(policy, type, { name: actor }, 'controller') };
}

function mayIssue(policy: EffectivePolicy, type: string, actor: string): boolean {
  return refuseIssuer(policy, type, { name: actor }, 'controller') === undefined;
}

function isEmptyRendering({ kptfile, conditions = [], withdraw = [] }: Rendering): boolean {
  return kptfile.length + conditions.length + withdraw.length === 0;
}

/** The report that all resolvers are done with the resulting content, if it is true, needed and new. */
function settledBy(evaluation: RevisionEvaluation, outcome: RunOutcome): RevisionChange['settled'] {
  const { applicable, reported, failures, unsettled, renderFailure } = outcome;
  if (unsettled !== undefined || failures.length > 0 || renderFailure !== undefined) return undefined;
  if (!applicable.every((name) => reported.has(name))) return undefined;
  // The Kptfile shows that a package was rendered.
  if (applicable.every((name) => name === RENDERER) && !isMarked(evaluation)) return undefined;
  const { settled } = evaluation.record;
  const known =
    settled?.content === outcome.package.inputs.content && settled.resolvers.join('\n') === applicable.join('\n');
  return known ? undefined : { resolvers: applicable };
}
