import { gatesOf, type KptfileEdit } from '../../kptfile-schema/index.ts';
import { type GivenCondition, plainCondition } from '../../src/package/model/verdict.ts';
import type { Resolution } from '../../src/package/plan/resolver.ts';
import type { Judgement } from '../../src/package/store/revision-store.ts';
import { WorkingPackage } from './working-package.ts';

/** The name under which the renderer appears. */
export const RENDERER = 'render';

/** What one of those who run says; the renderer may also edit the Kptfile. */
export interface Answer extends Resolution {
  readonly kptfile?: readonly KptfileEdit[];
}

/** Who wrote which files, and who last said what else about a package. The renderer appears among them by its own name. */
export interface Contributions {
  readonly files: ReadonlyMap<string, readonly string[]>;
  readonly conditions: ReadonlyMap<string, { readonly by: string; readonly given: GivenCondition }>;
  readonly withdrawn: ReadonlyMap<string, string>;
  readonly gates: ReadonlyMap<string, string>;
  /** Edits of the Kptfile by the renderer that changed something, in order. */
  readonly kptfile: readonly KptfileEdit[];
}

/** A package in the middle of a run, and where its edits came from. */
export interface RunState {
  readonly package: WorkingPackage;
  readonly contributions: Contributions;
}

export function startState({ revision, content }: Judgement): RunState {
  const contributions = {
    files: new Map(),
    conditions: new Map(),
    withdrawn: new Map(),
    gates: new Map(),
    kptfile: [],
  };
  return { package: WorkingPackage.open(revision, content), contributions };
}

/** The state after a resolver's answer. Throws what the Kptfile editor throws, with nothing taken. */
export function takeAnswer(state: RunState, by: string, answer: Answer): RunState {
  const { edits = new Map(), conditions = [], withdraw = [], gates = [] } = answer;
  const kptfile = effectiveEdits(state, answer.kptfile ?? []);
  const kptfileEdits: KptfileEdit[] = [
    ...kptfile,
    ...withdraw.map((type) => ({ op: 'removeCondition', type }) as const),
    ...conditions.map((given) => ({ op: 'setCondition', condition: plainCondition(given) }) as const),
    ...gates.map((conditionType) => ({ op: 'addGate', conditionType }) as const),
  ];
  const before = state.package.subject.files;
  const next = state.package.with(edits, kptfileEdits);
  const { contributions: old } = state;
  const gone = new Set(withdraw);
  for (const { type } of conditions) gone.delete(type);
  return {
    package: next,
    contributions: {
      files: new Map([
        ...old.files,
        ...next.changedSince(before).map((path) => [path, [...new Set([...(old.files.get(path) ?? []), by])]] as const),
      ]),
      conditions: new Map([
        ...[...old.conditions].filter(([type]) => !gone.has(type)),
        ...conditions.map((given) => [given.type, { by, given }] as const),
      ]),
      withdrawn: new Map([...old.withdrawn, ...[...gone].map((type) => [type, by] as const)]),
      gates: new Map([...old.gates, ...gates.map((type) => [type, by] as const)]),
      kptfile: [...old.kptfile, ...kptfile],
    },
  };
}

/** All of the edits, if they change anything. */
function effectiveEdits(state: RunState, edits: readonly KptfileEdit[]): readonly KptfileEdit[] {
  if (edits.length === 0) return edits;
  const before = state.package.subject.files.get('Kptfile');
  const after = state.package.with(new Map(), edits).subject.files.get('Kptfile');
  return before !== undefined && after?.equals(before) === true ? [] : edits;
}

/** What differs between two states. */
export interface Unrest {
  /** What changed and who did it, for people. */
  readonly what: string;
  readonly by: ReadonlySet<string>;
}

/** What differs between the states before and after a round, and who touched it; undefined if nothing does. */
export function whatChanged(before: RunState, after: RunState): Unrest | undefined {
  const { package: now, contributions } = after;
  const old = before.package.subject;
  const by = new Set<string>();
  const changes: string[] = [];
  const note = (who: readonly string[], what: string) => {
    for (const name of who) by.add(name);
    changes.push(`${who.join(' and ')} ${what}`);
  };
  for (const path of now.changedSince(old.files)) note(contributions.files.get(path) ?? [], `changes ${path}`);
  for (const [type, { by: giver, given }] of contributions.conditions) {
    const told = before.contributions.conditions.get(type);
    const sameInputs = told === undefined || String(told.given.inputs) === String(given.inputs);
    if (sameInputs && sameStatement(old.conditions.get(type), now.subject.conditions.get(type))) continue;
    note([giver], `changes condition ${type}`);
  }
  for (const [type, giver] of contributions.withdrawn)
    if (old.conditions.has(type) && !now.subject.conditions.has(type)) note([giver], `withdraws condition ${type}`);
  const gates = gatesOf(old.kptfile);
  for (const [type, giver] of contributions.gates) if (!gates.includes(type)) note([giver], `adds gate ${type}`);
  if (contributions.kptfile.length > before.contributions.kptfile.length) note([RENDERER], 'edits the Kptfile');
  return changes.length === 0 ? undefined : { what: changes.join(', '), by };
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
