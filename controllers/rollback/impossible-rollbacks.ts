import type { DueRollback } from '../../src/delivery/rollback/decide-rollbacks.ts';
import { packageKey } from '../../src/delivery/selection/select-revisions.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import { keyText, type ObjectKey } from '../../src/resource/object/object.ts';

/** What the search for an earlier revision depends on. */
export interface SearchFacts {
  /** Of the last delivery of the target. */
  readonly lastCommit: string;
  readonly isOutOfBandAllowed: boolean;
  /** The published revisions of the package. */
  readonly rows: readonly PackageRevision[];
}

/**
 * Rollbacks that were found impossible, so that the branch of the target is not searched again for the same facts: a package without an
 * earlier revision can stay unhealthy for days, and each report of the engine leads to another decision.
 */
export class ImpossibleRollbacks {
  /** The facts of the search without a result, by target and package. */
  readonly #byTarget = new Map<string, Map<string, string>>();

  add(target: ObjectKey, due: DueRollback, facts: SearchFacts): void {
    const key = keyText(target);
    const packages = this.#byTarget.get(key) ?? new Map<string, string>();
    this.#byTarget.set(key, packages.set(packageKey(due.delivered), textOf(due, facts)));
  }

  has(target: ObjectKey, due: DueRollback, facts: SearchFacts): boolean {
    return this.#byTarget.get(keyText(target))?.get(packageKey(due.delivered)) === textOf(due, facts);
  }

  /** Forgets the packages of a target that are not among these. */
  keep(target: ObjectKey, packages: { has(packageKey: string): boolean }): void {
    const known = this.#byTarget.get(keyText(target));
    for (const name of known?.keys() ?? []) if (!packages.has(name)) known?.delete(name);
    if (known?.size === 0) this.#byTarget.delete(keyText(target));
  }
}

function textOf({ delivered, state }: DueRollback, { lastCommit, isOutOfBandAllowed, rows }: SearchFacts): string {
  const published = rows.map(({ revision, commit, outOfBand }) => [revision, commit, outOfBand !== undefined]);
  return JSON.stringify([delivered.revision, state.healthy.since, lastCommit, isOutOfBandAllowed, published]);
}
