import { type Assignment, type OwnerKey, ownerText } from './claim.ts';
import { FreeSpace } from './free-space.ts';
import { contains, type Range, rangeKey, rangeOf, sizeOf } from './ipv4.ts';
import { comparePools, compareText, GATEWAY_LABEL, hostAddress, type Pool, type PrefixKind } from './pool.ts';
import { RangeMap } from './range-map.ts';

/** A pool with its reserved and its allocated addresses. */
export interface PoolState {
  readonly pool: Pool;
  /** Free but for reserved addresses and more specific pools inside this one. */
  readonly usable: FreeSpace;
  /** The part of `usable` that is free. */
  readonly space: FreeSpace;
  readonly gateway: number | undefined;
}

/** The records of one owner for one block: one for each revision that contains it. */
export interface OwnerAssignments {
  readonly owner: OwnerKey;
  readonly records: Assignment[];
}

/** An allocated block. More than one owner is a duplicate. */
export interface AllocationEntry {
  readonly range: Range;
  readonly byOwner: Map<string, OwnerAssignments>;
}

/** The pools of one network instance and the allocations in them. */
export class InstanceTable {
  /** In the order in which they are used. */
  readonly pools: readonly PoolState[];
  readonly #poolsByRange = new RangeMap<PoolState[]>();
  readonly #entries = new RangeMap<AllocationEntry>();
  readonly #byOwner = new Map<string, Map<number, AllocationEntry>>();

  constructor(pools: readonly Pool[]) {
    const sameBlock = new Map<number, Pool[]>();
    const byRange = new RangeMap<Pool[]>();
    const gateways = new RangeMap<Pool[]>();
    const ordered = pools.toSorted(comparePools);
    for (const pool of ordered) {
      const { range, address } = pool.prefix;
      const same = sameBlock.get(rangeKey(range)) ?? [];
      same.push(pool);
      sameBlock.set(rangeKey(range), same);
      byRange.set(range, same);
      if (pool.labels[GATEWAY_LABEL] !== 'true' || hostAddress(pool) === undefined) continue;
      const host = rangeOf(address, 32);
      gateways.set(host, [...(gateways.get(host) ?? []), pool]);
    }
    this.pools = ordered.map((pool) => stateOf(pool, byRange, gateways));
    for (const state of this.pools) {
      const { range } = state.pool.prefix;
      this.#poolsByRange.set(range, [...(this.#poolsByRange.get(range) ?? []), state]);
    }
  }

  add(assignment: Assignment): void {
    const key = ownerText(assignment.owner);
    let entry = this.#entries.get(assignment.range);
    if (entry === undefined) {
      entry = { range: assignment.range, byOwner: new Map() };
      this.#entries.set(assignment.range, entry);
      for (const { space, block } of this.#spacesOf(assignment.range)) space.take(block);
    }
    const assignments = entry.byOwner.get(key) ?? { owner: assignment.owner, records: [] };
    assignments.records.push(assignment);
    entry.byOwner.set(key, assignments);
    const owned = this.#byOwner.get(key) ?? new Map<number, AllocationEntry>();
    owned.set(rangeKey(assignment.range), entry);
    this.#byOwner.set(key, owned);
  }

  remove(assignment: Assignment): void {
    const key = ownerText(assignment.owner);
    const entry = this.#entries.get(assignment.range);
    const assignments = entry?.byOwner.get(key);
    const place = assignments?.records.findIndex((record) => sameRecord(record, assignment)) ?? -1;
    if (entry === undefined || assignments === undefined || place < 0) return;
    assignments.records.splice(place, 1);
    if (assignments.records.length > 0) return;
    entry.byOwner.delete(key);
    const owned = this.#byOwner.get(key);
    owned?.delete(rangeKey(assignment.range));
    if (owned?.size === 0) this.#byOwner.delete(key);
    if (entry.byOwner.size > 0) return;
    this.#entries.delete(assignment.range);
    for (const { space, block } of this.#spacesOf(assignment.range)) space.release(block);
  }

  /** Returns the blocks of an owner, the best first. */
  entriesOf(owner: OwnerKey): AllocationEntry[] {
    const key = ownerText(owner);
    const entries = [...(this.#byOwner.get(key)?.values() ?? [])];
    return entries.sort(
      (a, b) =>
        comparePrecedence(a.byOwner.get(key), b.byOwner.get(key)) ||
        a.range.base - b.range.base ||
        a.range.length - b.range.length,
    );
  }

  /** Returns the other owners of addresses in a block, in the order of precedence. */
  otherOwnersIn(range: Range, owner: OwnerKey): OwnerAssignments[] {
    const key = ownerText(owner);
    const others: OwnerAssignments[] = [];
    for (const entry of this.#entries.overlapping(range))
      for (const [holder, assignments] of entry.byOwner) if (holder !== key) others.push(assignments);
    return others.sort(comparePrecedence);
  }

  /** True if the owner has the block and takes precedence over every other owner of one of its addresses. */
  hasPrecedence(owner: OwnerKey, range: Range): boolean {
    const mine = this.#entries.get(range)?.byOwner.get(ownerText(owner));
    if (mine === undefined) return false;
    const strongest = this.otherOwnersIn(range, owner)[0];
    return strongest === undefined || comparePrecedence(mine, strongest) < 0;
  }

  /** Returns all allocated blocks, larger ones before those inside them. */
  entries(): Generator<AllocationEntry> {
    return this.#entries.overlapping({ base: 0, length: 0 });
  }

  /** The pools that share addresses with a block, each with the part of the block that lies in it. */
  *#spacesOf(range: Range): Generator<{ space: FreeSpace; block: Range }> {
    for (const states of this.#poolsByRange.overlapping(range))
      for (const { pool, space } of states)
        yield { space, block: contains(pool.prefix.range, range) ? range : pool.prefix.range };
  }
}

/** Active before released, published before not, older before younger, then by owner: the first keeps the value. */
export function comparePrecedence(a: OwnerAssignments | undefined, b: OwnerAssignments | undefined): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
  const [left, right] = [precedenceOf(a), precedenceOf(b)];
  return (
    Number(right.active) - Number(left.active) ||
    Number(right.published) - Number(left.published) ||
    left.since - right.since ||
    compareText(ownerText(a.owner), ownerText(b.owner))
  );
}

function precedenceOf(assignments: OwnerAssignments): { active: boolean; published: boolean; since: number } {
  const live = assignments.records.filter((record) => record.released === undefined);
  const records = live.length > 0 ? live : assignments.records;
  let since = Number.POSITIVE_INFINITY;
  for (const record of records) since = Math.min(since, record.since);
  return { active: live.length > 0, published: records.some((record) => record.published), since };
}

function sameRecord(a: Assignment, b: Assignment): boolean {
  return a.published === b.published && a.since === b.since && a.released === b.released;
}

const SPECIFICITY: Readonly<Record<PrefixKind, number>> = { aggregate: 0, pool: 1, loopback: 2, network: 2 };

function stateOf(pool: Pool, byRange: RangeMap<Pool[]>, gateways: RangeMap<Pool[]>): PoolState {
  const { range } = pool.prefix;
  const usable = new FreeSpace(range);
  const space = new FreeSpace(range);
  const reserve = (block: Range): void => {
    usable.take(block);
    space.take(block);
  };
  let gateway: number | undefined;
  const hosts = new Set<number>();
  for (const inside of byRange.overlapping(range)) {
    for (const other of inside) {
      if (!contains(range, other.prefix.range)) continue;
      const same = other.prefix.range.length === range.length;
      // Only the most specific pool allocates from the range that it covers.
      if (!same || SPECIFICITY[other.kind] > SPECIFICITY[pool.kind]) reserve(other.prefix.range);
      else if (other.kind === 'network') {
        const host = hostAddress(other);
        if (host !== undefined && range.length < 32) hosts.add(host);
      }
    }
  }
  if (pool.kind !== 'network') return { pool, usable, space, gateway };

  if (range.length < 32) gateway = gatewayOf(pool, gateways);
  if (gateway !== undefined) hosts.add(gateway);
  if (range.length < 31) hosts.add(range.base).add(range.base + sizeOf(range.length) - 1);
  for (const host of hosts) reserve(rangeOf(host, 32));
  return { pool, usable, space, gateway };
}

/** The gateway of a subnet: its own host address, else the host address of a prefix in it that is labelled as gateway. */
function gatewayOf(pool: Pool, gateways: RangeMap<Pool[]>): number | undefined {
  if (pool.labels[GATEWAY_LABEL] === 'none') return undefined;
  const candidates = [...gateways.overlapping(pool.prefix.range)].flat();
  const labelled = candidates.filter((other) => contains(pool.prefix.range, other.prefix.range)).sort(comparePools)[0];
  return hostAddress(pool) ?? labelled?.prefix.address;
}
