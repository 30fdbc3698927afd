import { gatesOf, type KptfileEdit } from '../../kptfile-schema/index.ts';
import type { Resolution } from '../../src/package/resolver.ts';
import type { Judgement } from '../../src/package/revision-store.ts';
import type { GivenCondition } from '../../src/package/verdict.ts';
import { WorkingPackage } from './working-package.ts';

/** Who wrote which files, and who last said what else about a package. The renderer appears among them by its own name. */
export interface Contributions {
  readonly files: ReadonlyMap<string, readonly string[]>;
  readonly conditions: ReadonlyMap<string, { readonly by: string; readonly given: GivenCondition }>;
  readonly withdrawn: ReadonlyMap<string, string>;
  readonly gates: ReadonlyMap<string, string>;
}

/** A package in the middle of a run, and where its edits came from. */
export interface RunState {
  readonly package: WorkingPackage;
  readonly contributions: Contributions;
}

export function startState({ revision, content }: Judgement): RunState {
  const contributions = { files: new Map(), conditions: new Map(), withdrawn: new Map(), gates: new Map() };
  return { package: WorkingPackage.open(revision, content), contributions };
}

/** The state after a resolver's answer. Throws what the Kptfile editor throws, with nothing taken. */
export function takeAnswer(state: RunState, by: string, resolution: Resolution): RunState {
  const { edits = new Map(), conditions = [], withdraw = [], gates = [] } = resolution;
  const kptfileEdits: KptfileEdit[] = [
    ...withdraw.map((type) => ({ op: 'removeCondition', type }) as const),
    ...conditions.map(({ inputs: _inputs, ...condition }) => ({ op: 'setCondition', condition }) as const),
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
    },
  };
}

/** What differs between the states before and after a round, and who touched it; undefined if nothing does. */
export function whatChanged(before: RunState, after: RunState): string | undefined {
  const { package: now, contributions } = after;
  const old = before.package.subject;
  const changes = now
    .changedSince(old.files)
    .map((path) => `${contributions.files.get(path)?.join(' and ')} changes ${path}`);
  for (const [type, { by, given }] of contributions.conditions) {
    const told = before.contributions.conditions.get(type);
    const sameInputs = told === undefined || String(told.given.inputs) === String(given.inputs);
    if (sameInputs && sameStatement(old.conditions.get(type), now.subject.conditions.get(type))) continue;
    changes.push(`${by} changes condition ${type}`);
  }
  for (const [type, by] of contributions.withdrawn)
    if (old.conditions.has(type) && !now.subject.conditions.has(type))
      changes.push(`${by} withdraws condition ${type}`);
  const gates = gatesOf(old.kptfile);
  for (const [type, by] of contributions.gates) if (!gates.includes(type)) changes.push(`${by} adds gate ${type}`);
  return changes.length === 0 ? undefined : changes.join(', ');
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
