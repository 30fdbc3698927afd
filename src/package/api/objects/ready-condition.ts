import { type Condition, conditionsOf, gatesOf, isAcceptedByKpt } from '../../../../kptfile-schema/index.ts';
import type { Gate } from '../../model/gates/gates.ts';
import { READY_TYPE } from '../../model/gates/ready-type.ts';
import { RENDERED_TYPE } from '../../model/gates/verdict.ts';
import { revisionName } from '../../model/identity/identity.ts';
import { publishedRecordOf } from '../../model/record/commit-message.ts';
import { isPlaceholder, isPublished, type PackageRevision } from '../../model/revision/package-revision.ts';
import { describeKptfileProblems, kptfileProblems } from '../../plan/edit/kptfile-problems.ts';
import type { PackageRepository } from '../../store/package-repository.ts';

/** Closed gates that a message names; a package may require many. */
const MAX_NAMED_GATES = 10;

type Policies = Pick<PackageRepository, 'policyFor'>;

/** True if its gates still decide whether a revision moves on. */
export function isUnpublished({ lifecycle }: PackageRevision): boolean {
  return lifecycle === 'Draft' || lifecycle === 'Proposed';
}

/** True if the Kptfile, a policy or the proposal requires a gate, or if kpt rejects the Kptfile, so that no step is allowed. */
export function requiresGates(revision: PackageRevision, repository: Policies): boolean {
  const { kptfile, lifecycle, record } = revision;
  if (kptfile !== undefined && gatesOf(kptfile).length > 0) return true;
  // A misspelt field may be the one with the gates.
  if (kptfile !== undefined && !isAcceptedByKpt(kptfile)) return true;
  // While it is False it counts as a gate.
  if (kptfile !== undefined && conditionsOf(kptfile).get(RENDERED_TYPE)?.status === 'False') return true;
  if (lifecycle === 'Proposed' && (record?.proposal?.gates ?? []).length > 0) return true;
  return repository.policyFor(revision).requiredGates.length > 0;
}

/** Tree of the package on the main branch, as far as it is a package there. */
export function treeOnMain({ key }: PackageRevision, { index, layout }: Pick<PackageRepository, 'index' | 'layout'>) {
  return index.get(revisionName({ ...key, workspace: layout.branch }))?.tip.tree;
}

/** True if the package on the main branch is not the latest publication, so that a revision may conflict with it. */
export function mayConflict(
  revision: PackageRevision,
  repository: Pick<PackageRepository, 'index' | 'layout'>,
): boolean {
  const latest = repository.index.ofPackage(revision.key.package).find((one) => one.latest);
  return treeOnMain(revision, repository) !== latest?.tip.tree;
}

/**
 * The condition of a pending revision whose gates were evaluated, and its conflict with the main branch; undefined if it has no gates and no
 * conflict, and kpt accepts its Kptfiles.
 */
export function evaluatedCondition(
  gates: readonly Gate[],
  files: ReadonlyMap<string, Uint8Array | null>,
  conflict?: { readonly message: string },
): Condition | undefined {
  const ready =
    gates.length === 0 ? undefined : fromGates(gates.map((gate) => ({ ...gate, open: gate.state === 'Open' })));
  const before = ready === undefined ? '' : `${ready.message}; `;
  const problems = describeKptfileProblems(kptfileProblems(files));
  if (problems === undefined && conflict === undefined) return ready;
  if (problems === undefined)
    return { type: READY_TYPE, status: 'False', reason: 'Conflicted', message: `${before}${conflict?.message}` };
  return {
    ...{ type: READY_TYPE, status: 'False', reason: 'InvalidKptfile' },
    message: `${before}kpt rejects the Kptfile: ${problems}`,
  };
}

export function notEvaluated(message: string): Condition {
  return { type: READY_TYPE, status: 'Unknown', reason: 'NotEvaluated', message };
}

/**
 * Returns the displayed Ready condition; `result` is the last evaluation of a pending revision. Undefined without
 * gates.
 */
export function readyCondition(
  revision: PackageRevision,
  repository: Policies,
  result: Condition | undefined,
): Condition | undefined {
  if (isPlaceholder(revision)) return undefined;
  if (isPublished(revision)) return publishedCondition(revision, repository);
  if (result !== undefined) return result;
  return requiresGates(revision, repository) ? notEvaluated('the gates are being evaluated') : undefined;
}

/** Evaluates the gates as of the approval; later policies do not change them. */
function publishedCondition(revision: PackageRevision, repository: Policies): Condition | undefined {
  const { kptfile, outOfBand, tip } = revision;
  const stated = publishedRecordOf(tip.facts)?.gates;
  const own = kptfile === undefined ? [] : gatesOf(kptfile);
  const required = outOfBand === undefined ? [] : repository.policyFor(revision).requiredGates;
  const types = stated?.map(({ type }) => type) ?? [
    ...new Set([...own, ...required.map(({ conditionType }) => conditionType)]),
  ];
  if (types.length === 0) return undefined;
  if (outOfBand !== undefined)
    return {
      ...{ type: READY_TYPE, status: 'False', reason: 'OutOfBand' },
      message: `published without the gates ${named(types)}: ${outOfBand.message}`,
    };
  // An adopted publication has no statement: only its conditions are known.
  const conditions = kptfile === undefined ? undefined : conditionsOf(kptfile);
  const stateOf = (type: string) => (conditions?.get(type)?.status === 'True' ? 'Open' : 'NotGiven');
  const gates = stated ?? types.map((type) => ({ type, state: stateOf(type) }));
  return fromGates(gates.map(({ type, state }) => ({ type, open: state === 'Open', explanation: state })));
}

function fromGates(
  gates: readonly { readonly type: string; readonly open: boolean; readonly explanation: string }[],
): Condition {
  const closed = gates.filter(({ open }) => !open);
  if (closed.length === 0) {
    const message = gates.length === 1 ? 'the gate is open' : `all ${gates.length} gates are open`;
    return { type: READY_TYPE, status: 'True', reason: 'AllGatesOpen', message };
  }
  const texts = closed.map(({ type, explanation }) => `${type} (${explanation})`);
  const message = `${closed.length} of ${gates.length} gates closed: ${named(texts)}`;
  return { type: READY_TYPE, status: 'False', reason: 'GatesClosed', message };
}

function named(texts: readonly string[]): string {
  const more = texts.length - MAX_NAMED_GATES;
  return [...texts.slice(0, MAX_NAMED_GATES), ...(more > 0 ? [`and ${more} more`] : [])].join(', ');
}
