import { timestamp } from '../foundation/time/clock.ts';
import type { AllocationTable } from './allocation-table.ts';
import { type Assignment, type Claim, claimedRange, describeOwner, ownerText, wantsPrefix } from './claim.ts';
import type { InstanceTable, PoolState } from './instance-table.ts';
import { contains, formatAddress, formatRange, type Range, rangeOf, sizeOf } from './ipv4.ts';
import { checkClaim, mismatches, noMatchingPool, sortByKind } from './matching.ts';
import { type AllocationOutcome, type AllocationRefusalReason, refusedFor } from './outcome.ts';
import { compareText, type Pool } from './pool.ts';

/**
 * Chooses the value of a claim; the only change to the table is that it drops released values whose grace period has ended.
 *
 * In this order: the value that the owner already has, if it still fits; the fixed prefix; the index; the value in the status,
 * if it is free; the lowest free one, pool by pool. The result is deterministic. `now`: milliseconds since the epoch.
 */
export function allocate(table: AllocationTable, claim: Claim, now: number): AllocationOutcome {
  table.expire(now);
  const invalid = checkClaim(claim);
  if (invalid !== undefined) return invalid;
  const instance = table.instance(claim.networkInstance);
  const pools = sortByKind(instance?.pools ?? [], claim).filter((state) => mismatches(state, claim).length === 0);
  if (instance === undefined || pools.length === 0) return noMatchingPool(table, claim);

  const search: Search = { table, instance, pools, claim };
  return sticky(search) ?? fixed(search) ?? byIndex(search) ?? hinted(search) ?? lowest(search);
}

export interface BatchResult {
  /** In the order of the claims given. */
  readonly outcomes: readonly AllocationOutcome[];
  /**
   * Assignment that were added to the table. The caller removes them if it does not write them, or when it adds the written
   * revision.
   */
  readonly taken: readonly Assignment[];
}

/**
 * Allocates for several claims and adds the new assignments to the table. Fixed values go first, then those bound to an index or a
 * status, then all others, each by owner, so that the order of the claims does not matter.
 */
export function allocateAll(table: AllocationTable, claims: readonly Claim[], now: number): BatchResult {
  const outcomes: AllocationOutcome[] = new Array(claims.length);
  const taken: Assignment[] = [];
  const order = claims.map((claim, place) => ({ claim, place, rank: rankOf(claim), owner: ownerText(claim.owner) }));
  order.sort((a, b) => a.rank - b.rank || compareText(a.owner, b.owner));
  for (const { claim, place } of order) {
    const outcome = allocate(table, claim, now);
    outcomes[place] = outcome;
    if (outcome.allocated === undefined || outcome.allocated.how === 'held') continue;
    const { owner, networkInstance } = claim;
    const assignment = { owner, networkInstance, range: outcome.allocated.range, published: false, since: now };
    table.add(assignment);
    taken.push(assignment);
  }
  return { outcomes, taken };
}

interface Search {
  readonly table: AllocationTable;
  readonly instance: InstanceTable;
  /** The pools that may serve the claim, in the order in which they are used. */
  readonly pools: readonly PoolState[];
  readonly claim: Claim;
}

type How = NonNullable<AllocationOutcome['allocated']>['how'];

function rankOf(claim: Claim): number {
  if (claim.prefix !== undefined) return 0;
  if (claim.index !== undefined) return 1;
  return claim.hint !== undefined ? 2 : 3;
}

function sticky({ instance, pools, claim }: Search): AllocationOutcome | undefined {
  for (const { range } of instance.entriesOf(claim.owner)) {
    if (!hasWantedForm(range, claim)) continue;
    const state = pools.find(({ pool, usable }) => contains(pool.prefix.range, range) && usable.isFree(range));
    if (state === undefined) continue;
    if (claim.index !== undefined && claim.prefix === undefined && !sameRange(atIndex(state, claim), range)) continue;
    if (instance.hasPrecedence(claim.owner, range)) return given(state, range, claim, 'held');
  }
  return undefined;
}

/** True if the block is one address, or a prefix of the requested length, and the fixed one if the claim names one. */
function hasWantedForm(range: Range, claim: Claim): boolean {
  if (claim.prefix !== undefined) return sameRange(range, claimedRange(claim, claim.prefix));
  return range.length === (wantsPrefix(claim) ? claim.prefixLength : 32);
}

function fixed(search: Search): AllocationOutcome | undefined {
  const { claim, pools, table } = search;
  const range = claim.prefix === undefined ? undefined : claimedRange(claim, claim.prefix);
  if (claim.prefix === undefined || range === undefined) return undefined;
  const around = pools.filter(({ pool }) => contains(pool.prefix.range, range));
  if (around[0] === undefined) return noMatchingPool(table, claim, range);
  const state = around.find(({ usable }) => usable.isFree(range));
  if (state === undefined) return refusedFor('InvalidClaim', unusableReason(around[0], range));
  const length = Number(claim.prefix.split('/')[1] ?? 32);
  if (!wantsPrefix(claim) && length !== 32 && length !== state.pool.prefix.range.length)
    return refusedFor(
      'InvalidClaim',
      `spec.prefix ${claim.prefix} has another length than its subnet ${poolText(state.pool)}`,
    );
  return takenBy(search, range) ?? given(state, range, claim, 'fixed');
}

function byIndex(search: Search): AllocationOutcome | undefined {
  const { claim, pools } = search;
  if (claim.index === undefined) return undefined;
  for (const state of pools) {
    const range = atIndex(state, claim);
    if (range === undefined) continue;
    if (!state.usable.isFree(range)) return refusedFor('InvalidClaim', unusableReason(state, range));
    return takenBy(search, range) ?? given(state, range, claim, 'index');
  }
  const names = pools.map(({ pool }) => poolText(pool)).join(', ');
  return refusedFor('InvalidClaim', `spec.index ${claim.index} is outside every matching pool: ${names}`);
}

/** The block at the index of the claim; undefined where the pool ends before. */
function atIndex({ pool }: PoolState, claim: Claim): Range | undefined {
  const length = wantsPrefix(claim) ? (claim.prefixLength ?? 32) : 32;
  const { range } = pool.prefix;
  if (claim.index === undefined || length < range.length) return undefined;
  if (claim.index >= sizeOf(range.length) / sizeOf(length)) return undefined;
  return { base: range.base + claim.index * sizeOf(length), length };
}

function hinted({ claim, pools, instance }: Search): AllocationOutcome | undefined {
  const range = claim.hint === undefined ? undefined : claimedRange(claim, claim.hint);
  if (range === undefined || !hasWantedForm(range, claim)) return undefined;
  const state = pools.find(({ pool, usable }) => contains(pool.prefix.range, range) && usable.isFree(range));
  if (state === undefined || instance.otherOwnersIn(range, claim.owner).length > 0) return undefined;
  return given(state, range, claim, 'status');
}

function lowest({ claim, pools, table }: Search): AllocationOutcome {
  const length = wantsPrefix(claim) ? (claim.prefixLength ?? 32) : 32;
  for (const state of pools) {
    const range = state.space.lowest(length);
    if (range !== undefined) return given(state, range, claim, 'lowest');
  }
  const what = wantsPrefix(claim) ? `free /${length}` : 'free address';
  const counts = pools.map((state) => `${poolText(state.pool)}: ${state.space.free} of ${state.usable.free} free`);
  const message = `no ${what} in network instance ${claim.networkInstance}: ${counts.join('; ')}`;
  const blocks = pools.map(({ pool }) => pool.prefix.range);
  const retryAt = table.nextRelease(claim.networkInstance, blocks);
  if (retryAt === undefined) return refusedFor('PoolExhausted', message);
  return refusedFor('AwaitingRelease', `${message}; a released value becomes free at ${timestamp(retryAt)}`, retryAt);
}

/** Returns the refusal if another claim holds an address of the block. */
function takenBy({ instance, table, claim }: Search, range: Range): AllocationOutcome | undefined {
  const holder = instance.otherOwnersIn(range, claim.owner)[0];
  if (holder === undefined) return undefined;
  const until = table.freeAt(holder);
  const who = describeOwner(holder.owner);
  const reason: AllocationRefusalReason = until === undefined ? 'AddressConflict' : 'AwaitingRelease';
  const state = until === undefined ? 'is held by' : `is kept back until ${timestamp(until)} for`;
  return refusedFor(reason, `${textOf(range)} ${state} ${who}`, until, holder.owner);
}

function unusableReason(state: PoolState, range: Range): string {
  const { pool, gateway } = state;
  const block = pool.prefix.range;
  const last = block.base + sizeOf(block.length) - 1;
  const inside = `${textOf(range)} cannot be allocated: in ${poolText(pool)} it`;
  if (pool.kind === 'network' && range.length === 32) {
    if (range.base === gateway) return `${inside} is the gateway`;
    if (block.length < 31 && range.base === block.base) return `${inside} is the network address`;
    if (block.length < 31 && range.base === last) return `${inside} is the broadcast address`;
  }
  return `${inside} is reserved or belongs to a more specific IPPrefix, whose labels the selector must match`;
}

function given(state: PoolState, range: Range, claim: Claim, how: How): AllocationOutcome {
  const { pool, gateway } = state;
  const isAddress = !wantsPrefix(claim);
  const inSubnet = isAddress && claim.kind === 'network';
  return {
    allocated: {
      prefix: inSubnet ? `${formatAddress(range.base)}/${pool.prefix.range.length}` : formatRange(range),
      ...(inSubnet && gateway !== undefined ? { gateway: formatAddress(gateway) } : {}),
      range,
      pool,
      how,
    },
  };
}

function sameRange(a: Range | undefined, b: Range | undefined): boolean {
  return a !== undefined && b !== undefined && a.base === b.base && a.length === b.length;
}

function textOf(range: Range): string {
  return range.length === 32 ? formatAddress(range.base) : formatRange(range);
}

function poolText(pool: Pool): string {
  return `IPPrefix ${pool.name} (${formatRange(rangeOf(pool.prefix.address, pool.prefix.range.length))})`;
}
