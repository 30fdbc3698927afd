import type { AllocationTable } from './allocation-table.ts';
import { type Claim, claimedRange, wantsPrefix } from './claim.ts';
import type { PoolState } from './instance-table.ts';
import { contains, formatRange, parsePrefix, type Range } from './ipv4.ts';
import { type AllocationOutcome, refusedFor } from './outcome.ts';
import { GATEWAY_LABEL, type PrefixKind } from './pool.ts';

/** Maximum number of nearly matching pools in a message. */
const MAX_NEAREST = 3;

/** The kinds of prefix that may serve a claim, the preferred first. */
function servingKinds(claim: Claim): readonly PrefixKind[] {
  if (claim.kind === 'loopback') return ['loopback', 'aggregate'];
  if (claim.kind === 'pool') return ['pool', 'aggregate'];
  return wantsPrefix(claim) ? ['aggregate'] : ['network'];
}

/** Pools of the claim's own kind before aggregates, otherwise as they were. */
export function sortByKind(pools: readonly PoolState[], claim: Claim): PoolState[] {
  const kinds = servingKinds(claim);
  return pools.toSorted((a, b) => kinds.indexOf(a.pool.kind) - kinds.indexOf(b.pool.kind));
}

/** Returns the reasons why a pool cannot serve a claim; empty if it can. */
export function mismatches({ pool, gateway }: PoolState, claim: Claim): string[] {
  const found: string[] = [];
  const kinds = servingKinds(claim);
  if (!kinds.includes(pool.kind)) found.push(`is of kind ${pool.kind}, not ${kinds.join(' or ')}`);
  for (const [label, wanted] of Object.entries(claim.matchLabels)) {
    const value = Object.hasOwn(pool.labels, label) ? pool.labels[label] : undefined;
    if (value === wanted) continue;
    found.push(value === undefined ? `has no label ${label}=${wanted}` : `has ${label}=${value}, not ${wanted}`);
  }
  const needsGateway = pool.kind === 'network' && pool.prefix.range.length < 31;
  if (needsGateway && gateway === undefined && pool.labels[GATEWAY_LABEL] !== 'none')
    found.push(
      `has no gateway (write the prefix as address and length, such as 10.0.0.1/24, with label ${GATEWAY_LABEL}: "true", or label it ${GATEWAY_LABEL}: "none")`,
    );
  return found;
}

/** The refusal where no pool can serve the claim, or none around its fixed value, with the pools that come nearest. */
export function noMatchingPool(table: AllocationTable, claim: Claim, around?: Range): AllocationOutcome {
  const pools = table.instance(claim.networkInstance)?.pools ?? [];
  if (pools.length === 0) {
    const known = table.instanceNames();
    const others = known.length === 0 ? 'there are no pools at all' : `there are pools for ${known.join(', ')}`;
    return refusedFor('NoMatchingPool', `no IPPrefix for network instance ${claim.networkInstance}: ${others}`);
  }
  const what = around === undefined ? 'matches the claim' : `that matches the claim contains ${claim.prefix}`;
  const near = pools
    .filter(({ pool }) => around === undefined || contains(pool.prefix.range, around))
    .map((state) => ({ pool: state.pool, reasons: mismatches(state, claim) }))
    .sort((a, b) => a.reasons.length - b.reasons.length)
    .slice(0, MAX_NEAREST)
    .map(({ pool, reasons }) => `${pool.name} (${formatRange(pool.prefix.range)}) ${reasons.join(', ')}`);
  const nearest = near.length === 0 ? '' : `; nearest: ${near.join('; ')}`;
  return refusedFor('NoMatchingPool', `no IPPrefix of network instance ${claim.networkInstance} ${what}${nearest}`);
}

/** Returns the problem of the claim itself, independent of the pools. */
export function checkClaim(claim: Claim): AllocationOutcome | undefined {
  const problem = problemOf(claim);
  return problem === undefined ? undefined : refusedFor('InvalidClaim', problem);
}

function problemOf(claim: Claim): string | undefined {
  if (claim.addressFamily === 'ipv6') return 'spec.addressFamily ipv6 is not supported, only ipv4';
  const { prefix, prefixLength } = claim;
  if (prefixLength !== undefined && prefixLength > 32) return `spec.prefixLength ${prefixLength} is more than 32`;
  if (prefix !== undefined) {
    const parsed = parsePrefix(prefix);
    if (parsed === undefined) return `spec.prefix ${JSON.stringify(prefix)} is no IPv4 address or prefix`;
    if (wantsPrefix(claim)) {
      if (parsed.address !== parsed.range.base)
        return `spec.prefix ${prefix} has host bits: write ${formatRange(parsed.range)}`;
      const length = claimedRange(claim, prefix)?.length;
      if (prefixLength !== undefined && prefixLength !== length)
        return `spec.prefix ${prefix} and spec.prefixLength ${prefixLength} disagree`;
    }
  }
  if (wantsPrefix(claim) && prefix === undefined && prefixLength === undefined)
    return 'spec.prefixLength is missing: a claim for a prefix must state its length';
  if (!wantsPrefix(claim) && prefixLength !== undefined && prefixLength !== 32)
    return `spec.prefixLength ${prefixLength} needs spec.createPrefix: true; without it the claim gets one address`;
  return undefined;
}
