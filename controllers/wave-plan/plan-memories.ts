import type { WavePlan } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { keyOf, keyText, type ObjectKey, type Stored } from '../../src/resource/object/object.ts';
import type { TargetObservation } from '../../src/rollout/wave/observation.ts';
import type { PlanState, TargetRecord } from '../../src/rollout/wave/plan-state.ts';
import type { Outcome } from './targets/approve-targets.ts';

/** Milliseconds after which a refused approval is attempted again. */
const RETRY_MS = 15_000;
/** A gap between two observations counts up to this much: Sluice did not observe the plan in it. */
const MAX_ELAPSED_MS = 60_000;

/** Observations of a plan that is over and waits for the result of an approval, which may never come: about ten minutes. */
const MAX_LATE_OBSERVATIONS = 20;

/** What a process remembers of a plan. It may be lost at any time. */
class PlanMemory {
  readonly uid: string;
  /** What the last attempts led to, by target. */
  readonly outcomes = new Map<string, Pick<TargetObservation, 'refusal' | 'failure' | 'rollback'>>();
  readonly #attempts = new Map<string, { readonly what: string; readonly atMs: number }>();
  readonly #monotonic: () => number;
  #sinceMs: number;
  #wasFrozen = false;
  /** The generation of which it is recorded that the plan is over, and how often it was observed since. */
  #over: { readonly generation: number | undefined; count: number; isClosed: boolean } | undefined;

  constructor(uid: string, monotonic: () => number) {
    this.uid = uid;
    this.#monotonic = monotonic;
    this.#sinceMs = monotonic();
  }

  /** To be called with each observation. A time at whose start or end a freeze is in force does not count. */
  observed(isFrozen: boolean): void {
    if (isFrozen || this.#wasFrozen) this.recorded();
    this.#wasFrozen = isFrozen;
  }

  /** It is recorded that the plan is over. `isApproving`: the result of an approval is not known yet. */
  noteOver(generation: number | undefined, isApproving: boolean): void {
    const before = this.#over;
    const count = before !== undefined && before.generation === generation ? before.count + 1 : 1;
    this.#over = { generation, count, isClosed: !isApproving || count >= MAX_LATE_OBSERVATIONS };
  }

  /** True if the plan is over, and nothing of it has to be observed until a user changes it. */
  isClosed(generation: number | undefined): boolean {
    return this.#over?.isClosed === true && this.#over.generation === generation;
  }

  /** Milliseconds since the time of the plan was recorded. */
  elapsedMs(): number {
    return Math.min(Math.max(0, Math.floor(this.#monotonic() - this.#sinceMs)), MAX_ELAPSED_MS);
  }

  isDue(afterMs: number): boolean {
    return this.elapsedMs() >= afterMs;
  }

  recorded(): void {
    this.#sinceMs = this.#monotonic();
  }

  /** False for a target whose approval was refused a moment ago, and that has not changed since. */
  mayAttempt(target: TargetRecord): boolean {
    const last = this.#attempts.get(target.id);
    return last === undefined || last.what !== versionOf(target) || this.#monotonic() - last.atMs >= RETRY_MS;
  }

  note({ id, ...outcome }: Outcome, { targets }: PlanState): void {
    const target = targets.get(id);
    if (Object.keys(outcome).length === 0 || target === undefined) {
      this.outcomes.delete(id);
      this.#attempts.delete(id);
      return;
    }
    this.outcomes.set(id, outcome);
    this.#attempts.set(id, { what: versionOf(target), atMs: this.#monotonic() });
  }

  /** True if the rollback of the target got on. */
  noteRollback(id: string, rollback: NonNullable<TargetObservation['rollback']>): boolean {
    const isSame = JSON.stringify(this.outcomes.get(id)?.rollback) === JSON.stringify(rollback);
    this.outcomes.set(id, { rollback });
    return !isSame;
  }
}

function versionOf({ revision, commit }: TargetRecord): string {
  return `${revision} ${commit}`;
}

export class PlanMemories {
  readonly #plans = new Map<string, PlanMemory>();
  readonly #monotonic: () => number;

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  of(plan: Stored<WavePlan>): PlanMemory {
    const key = keyText(keyOf(plan));
    const known = this.#plans.get(key);
    if (known?.uid === plan.metadata.uid) return known;
    const memory = new PlanMemory(plan.metadata.uid, this.#monotonic);
    this.#plans.set(key, memory);
    return memory;
  }

  forget(key: ObjectKey): void {
    this.#plans.delete(keyText(key));
  }
}
