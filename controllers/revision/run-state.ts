import { gatesOf, type KptfileEdit } from '../../kptfile-schema/index.ts';
import { type IssuedCondition, plainCondition } from '../../src/package/model/gates/verdict.ts';
import type { Resolution } from '../../src/package/plan/ports/resolver.ts';
import type { RevisionEvaluation } from '../../src/package/store/evaluate-revision.ts';
import { WorkingPackage } from './working-package.ts';

/** The name of the renderer in contributions and reports. */
export const RENDERER = 'render';

/** The result of a resolver or of the renderer, which may also edit the Kptfile. */
export interface StepResult extends Resolution {
  readonly kptfile?: readonly KptfileEdit[];
}

/** The resolvers that wrote each file, condition and gate of a package. The renderer appears under its own name. */
export interface Contributions {
  readonly files: ReadonlyMap<string, readonly string[]>;
  readonly conditions: ReadonlyMap<string, { readonly by: string; readonly given: IssuedCondition }>;
  readonly withdrawn: ReadonlyMap<string, string>;
  readonly gates: ReadonlyMap<string, string>;
  /** Edits of the Kptfile by the renderer that changed it, in order. */
  readonly kptfile: readonly KptfileEdit[];
}

/** A package during a run, and the origin of its edits. */
export interface RunState {
  readonly package: WorkingPackage;
  readonly contributions: Contributions;
}

export function startState({ revision, content }: RevisionEvaluation): RunState {
  const contributions = {
    files: new Map(),
    conditions: new Map(),
    withdrawn: new Map(),
    gates: new Map(),
    kptfile: [],
  };
  return { package: WorkingPackage.open(revision, content), contributions };
}

/** The state after a resolver's result. Throws what the Kptfile editor throws; the state then stays as it was. */
export function applyResult(state: RunState, by: string, result: StepResult): RunState {
  const { edits = new Map(), conditions = [], withdraw = [], gates = [] } = result;
  const kptfile = effectiveEdits(state, result.kptfile ?? []);
  const kptfileEdits: KptfileEdit[] = [
    ...kptfile,
    ...withdraw.map((type) => ({ op: 'removeCondition', type }) as const),
    ...conditions.map((given) => ({ op: 'setCondition', condition: plainCondition(given) }) as const),
    ...gates.map((conditionType) => ({ op: 'addGate', conditionType }) as const),
  ];
  const before = state.package.subject.files;
  const next = state.package.with(edits, kptfileEdits);
  const { contributions: old } = state;
  const removed = new Set(withdraw);
  for (const { type } of conditions) removed.delete(type);
  return {
    package: next,
    contributions: {
      files: new Map([
        ...old.files,
        ...next.changedSince(before).map((path) => [path, [...new Set([...(old.files.get(path) ?? []), by])]] as const),
      ]),
      conditions: new Map([
        ...[...old.conditions].filter(([type]) => !removed.has(type)),
        ...conditions.map((given) => [given.type, { by, given }] as const),
      ]),
      withdrawn: new Map([...old.withdrawn, ...[...removed].map((type) => [type, by] as const)]),
      gates: new Map([...old.gates, ...gates.map((type) => [type, by] as const)]),
      kptfile: [...old.kptfile, ...kptfile],
    },
  };
}

/** All of the edits if they change anything, else none. */
function effectiveEdits(state: RunState, edits: readonly KptfileEdit[]): readonly KptfileEdit[] {
  if (edits.length === 0) return edits;
  const before = state.package.subject.files.get('Kptfile');
  const after = state.package.with(new Map(), edits).subject.files.get('Kptfile');
  return before !== undefined && after?.equals(before) === true ? [] : edits;
}

/** The differences between two states. */
export interface RoundDiff {
  /** The change and its resolver, for messages. */
  readonly changes: string;
  readonly by: ReadonlySet<string>;
}

/** The differences between the states before and after a round, and their authors; undefined if there are none. */
export function compareStates(before: RunState, after: RunState): RoundDiff | undefined {
  const { package: now, contributions } = after;
  const old = before.package.subject;
  const by = new Set<string>();
  const changes: string[] = [];
  const note = (who: readonly string[], what: string) => {
    for (const name of who) by.add(name);
    changes.push(`${who.join(' and ')} ${what}`);
  };
  for (const path of now.changedSince(old.files)) note(contributions.files.get(path) ?? [], `changes ${path}`);
  for (const [type, { by: issuer, given }] of contributions.conditions) {
    const earlier = before.contributions.conditions.get(type);
    const sameInputs = earlier === undefined || String(earlier.given.inputs) === String(given.inputs);
    if (sameInputs && sameStatement(old.conditions.get(type), now.subject.conditions.get(type))) continue;
    note([issuer], `changes condition ${type}`);
  }
  for (const [type, issuer] of contributions.withdrawn)
    if (old.conditions.has(type) && !now.subject.conditions.has(type)) note([issuer], `withdraws condition ${type}`);
  const gates = gatesOf(old.kptfile);
  for (const [type, issuer] of contributions.gates) if (!gates.includes(type)) note([issuer], `adds gate ${type}`);
  if (contributions.kptfile.length > before.contributions.kptfile.length) note([RENDERER], 'edits the Kptfile');
  return changes.length === 0 ? undefined : { changes: changes.join(', '), by };
}

interface Statement {
  readonly status: string;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
}

function sameStatement(a: Statement | undefined, b: Statement | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.status === b.status && (a.reason ?? '') === (b.reason ?? '') && (a.message ?? '') === (b.message ?? '');
}
