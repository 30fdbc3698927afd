import { isOlder } from '../../resource/object/resource-version.ts';
import type { ElectionConfig } from './election-config.ts';
import type { Sighting } from './election-state.ts';
import { durationMsOf, holderOf, type StoredLease } from './lease-record.ts';

/** The longest recorded duration that counts: this multiple of the own one, and no more than the absolute limit. */
const MAX_RECORDED_DURATION_FACTOR = 10;
const MAX_RECORDED_DURATION_MS = 300_000;

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
  // The holder of a Lease that was deleted leads until it notices, and renews it no more.
  if (lease === undefined) {
    const freeAtMs = Math.min(seen?.freeAtMs ?? nowMs, nowMs + config.leaseDurationMs);
    return { lease, version: version ?? seen?.version, atMs: nowMs, freeAtMs };
  }
  // Each new version counts from now, so also one that corrects the duration of the same holder.
  return { lease, version, atMs: nowMs, freeAtMs: nowMs + (isOther ? waitMsFor(lease, config) : 0) };
}

/** How long to wait for the holder of a Lease. Limited, since an edited record must not stop the election for years. */
function waitMsFor(lease: StoredLease, { leaseDurationMs }: ElectionConfig): number {
  const recordedMs = durationMsOf(lease) ?? leaseDurationMs;
  const maxMs = Math.min(MAX_RECORDED_DURATION_FACTOR * leaseDurationMs, MAX_RECORDED_DURATION_MS);
  return Math.min(recordedMs, Math.max(maxMs, leaseDurationMs));
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
