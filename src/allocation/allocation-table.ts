import type { Assignment, OwnerKey } from './claim.ts';
import { type AllocationEntry, comparePrecedence, InstanceTable, type OwnerAssignments } from './instance-table.ts';
import { contains, formatRange, type Range } from './ipv4.ts';
import { compareText, type Pool } from './pool.ts';

export interface TableOptions {
  /** Milliseconds for which a released value is reserved for its owner. */
  readonly gracePeriod: number;
}

/** A value with more than one owner. The first owner keeps it; the claims of the others are allocated another value. */
export interface Duplicate {
  readonly networkInstance: string;
  readonly prefix: string;
  readonly keeper: OwnerKey;
  readonly others: readonly OwnerKey[];
}

export interface PoolUsage {
  readonly pool: Pool;
  /** Addresses that can be allocated: without network, broadcast and gateway addresses and more specific pools. */
  readonly total: number;
  readonly free: number;
}

/**
 * The assignments of each network instance. The table is derived from the claims in all revisions and never stored; `add` and
 * `remove` keep a long-lived table current at a cost that does not depend on its size. Assignment of one owner with the same value
 * count as one.
 */
export class AllocationTable {
  readonly #instances = new Map<string, InstanceTable>();
  readonly #gracePeriod: number;
  /** Released assignments, the last to become free first. */
  readonly #expiring: { readonly at: number; readonly assignment: Assignment }[] = [];

  constructor(pools: Iterable<Pool>, options: TableOptions) {
    this.#gracePeriod = options.gracePeriod;
    for (const [key, list] of Map.groupBy(pools, (pool) => pool.networkInstance))
      this.#instances.set(key, new InstanceTable(list));
  }

  /** Adds an assignment of one revision. Call it once for each revision that has the assignment. */
  add(assignment: Assignment): void {
    let instance = this.#instances.get(assignment.networkInstance);
    if (instance === undefined) {
      instance = new InstanceTable([]);
      this.#instances.set(assignment.networkInstance, instance);
    }
    instance.add(assignment);
    if (assignment.released === undefined) return;
    const at = assignment.released + this.#gracePeriod;
    let [low, high] = [0, this.#expiring.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#expiring[middle]?.at ?? 0) > at) low = middle + 1;
      else high = middle;
    }
    this.#expiring.splice(low, 0, { at, assignment });
  }

  /** Undoes one `add` of an equal assignment. Without such an `add` it does nothing. */
  remove(assignment: Assignment): void {
    this.#instances.get(assignment.networkInstance)?.remove(assignment);
  }

  /**
   * Drops assignments that were released before the grace period began. The caller never passes an earlier time than
   * before.
   */
  expire(now: number): void {
    for (let last = this.#expiring.at(-1); last !== undefined && last.at <= now; last = this.#expiring.at(-1)) {
      this.#expiring.pop();
      this.remove(last.assignment);
    }
  }

  /**
   * Returns the time at which the next released value inside one of the blocks becomes free. Milliseconds since the
   * epoch.
   */
  nextRelease(networkInstance: string, blocks: readonly Range[]): number | undefined {
    return this.#expiring.findLast(
      ({ assignment }) =>
        assignment.networkInstance === networkInstance && blocks.some((block) => contains(block, assignment.range)),
    )?.at;
  }

  /**
   * Returns the time at which an allocation ends, so that other owners can be allocated the block; undefined while it is
   * active.
   */
  freeAt(assignments: OwnerAssignments): number | undefined {
    let last = 0;
    for (const { released } of assignments.records) {
      if (released === undefined) return undefined;
      last = Math.max(last, released);
    }
    return last + this.#gracePeriod;
  }

  instance(key: string): InstanceTable | undefined {
    return this.#instances.get(key);
  }

  /** The network instances that have pools. */
  instanceNames(): string[] {
    const served = [...this.#instances].filter(([, instance]) => instance.pools.length > 0);
    return served.map(([name]) => name).sort(compareText);
  }

  /** Every value with more than one owner, and every block inside a block of another owner, by instance and address. */
  duplicates(): Duplicate[] {
    const found: Duplicate[] = [];
    for (const [networkInstance, instance] of this.#sorted()) {
      const around: AllocationEntry[] = [];
      for (const entry of instance.entries()) {
        while (around.length > 0 && !contains((around.at(-1) as AllocationEntry).range, entry.range)) around.pop();
        around.push(entry);
        const byOwner = new Map<string, OwnerAssignments>();
        for (const { byOwner: holders } of around)
          for (const [key, assignments] of holders) {
            const known = byOwner.get(key);
            if (known === undefined || comparePrecedence(assignments, known) < 0) byOwner.set(key, assignments);
          }
        const [keeper, ...others] = [...byOwner.values()].sort(comparePrecedence).map(({ owner }) => owner);
        if (keeper !== undefined && others.length > 0)
          found.push({ networkInstance, prefix: formatRange(entry.range), keeper, others });
      }
    }
    return found;
  }

  usage(): PoolUsage[] {
    return this.#sorted().flatMap(([, instance]) =>
      instance.pools.map(({ pool, usable, space }) => ({ pool, total: usable.free, free: space.free })),
    );
  }

  #sorted(): [string, InstanceTable][] {
    return [...this.#instances].sort(([a], [b]) => compareText(a, b));
  }
}

/** The table of these assignments. The order of assignments and pools does not matter. */
export function deriveTable(
  pools: Iterable<Pool>,
  assignments: Iterable<Assignment>,
  options: TableOptions,
): AllocationTable {
  const table = new AllocationTable(pools, options);
  for (const assignment of assignments) table.add(assignment);
  return table;
}
