import { isOlder } from '../resource-version.ts';
import type { ElectionConfig } from './election-config.ts';
import type { Sighting } from './election-state.ts';
import { durationMsOf, holderOf, type StoredLease } from './lease-record.ts';

/** A record as it arrives. */
export interface Arrival {
  readonly lease: StoredLease | undefined;
  /** Undefined if a read found no Lease. */
  readonly version: string | undefined;
  /** When the read that brought it began; undefined for an event of the watch, which can be any time behind. */
  readonly readAtMs: number | undefined;
}

/** What the candidate knows after an arrival; the same sighting if that brings nothing new. */
export function observe(seen: Sighting | undefined, arrival: Arrival, nowMs: number, config: ElectionConfig): Sighting {
  if (seen !== undefined && bringsNothing(seen, arrival)) return seen;
  const { lease, version } = arrival;
  const holder = holderOf(lease);
  const isOther = holder !== undefined && holder !== config.identity;
  // The holder of a Lease that was deleted leads until it notices.
  if (lease === undefined)
    return { lease, version: version ?? seen?.version, atMs: nowMs, freeAtMs: seen?.freeAtMs ?? nowMs };
  const waitMs = isOther ? (durationMsOf(lease) ?? config.leaseDurationMs) : 0;
  return { lease, version, atMs: nowMs, freeAtMs: nowMs + waitMs };
}

function bringsNothing(seen: Sighting, { lease, version, readAtMs }: Arrival): boolean {
  const isSame = version === seen.version && (lease === undefined) === (seen.lease === undefined);
  if (isSame || (lease === undefined && seen.lease === undefined)) return true;
  // A read that began after the last sighting shows the present state, also if the server was restored from a backup.
  if (readAtMs !== undefined && readAtMs >= seen.atMs) return false;
  if (version === undefined) return true;
  if (seen.version === undefined || isOlder(seen.version, version)) return false;
  // The deletion of the version that was seen.
  return !(lease === undefined && version === seen.version);
}
