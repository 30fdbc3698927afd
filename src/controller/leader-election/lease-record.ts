import type { leaseKind } from '../../resource/kinds/coordination/lease.ts';
import type { ObjectMeta, Stored } from '../../resource/object/object.ts';
import type { ObjectOf } from '../../resource/schema/kind.ts';
import type { ElectionConfig } from './election-config.ts';

export type Lease = ObjectOf<typeof leaseKind>;
export type StoredLease = Stored<Lease>;

/** A Lease as a candidate writes it: with the version that it replaces, or without one if it is new. */
export interface LeaseDraft {
  readonly metadata: ObjectMeta;
  readonly spec: Lease['spec'];
}

const MAX_TRANSITIONS = 2 ** 31 - 1;

/** Identity of the holder; undefined if the lease is free. */
export function holderOf(lease: Lease | undefined): string | undefined {
  return lease?.spec.holderIdentity || undefined;
}

/** How long the holder wants others to wait; undefined if the record does not contain it. */
export function durationMsOf({ spec }: Lease): number | undefined {
  return typeof spec.leaseDurationSeconds === 'number' ? spec.leaseDurationSeconds * 1000 : undefined;
}

/** The record with which a candidate acquires or renews the lease. The times are for people: no candidate compares them with its clock. */
export function heldLease(previous: StoredLease | undefined, config: ElectionConfig, wallMs: number): LeaseDraft {
  const { namespace, name, identity, leaseDurationMs } = config;
  const spec = previous?.spec;
  const renewTime = microTime(wallMs, spec?.renewTime);
  const isSame = holderOf(previous) === identity;
  const transitions = spec?.leaseTransitions ?? 0;
  return {
    metadata: previous?.metadata ?? { namespace, name },
    spec: {
      ...spec,
      holderIdentity: identity,
      leaseDurationSeconds: leaseDurationMs / 1000,
      acquireTime: (isSame ? spec?.acquireTime : undefined) ?? renewTime,
      renewTime,
      leaseTransitions: isSame || previous === undefined ? transitions : Math.min(transitions + 1, MAX_TRANSITIONS),
    },
  };
}

/** The record with which a holder gives up the lease, as client-go writes it. */
export function releasedLease(previous: StoredLease, wallMs: number): LeaseDraft {
  const { metadata, spec } = previous;
  const renewTime = microTime(wallMs, spec.renewTime);
  return {
    metadata,
    spec: { ...spec, holderIdentity: '', leaseDurationSeconds: 1, acquireTime: renewTime, renewTime },
  };
}

/**
 * A MicroTime, with six digits. It differs from the present one even if the clock stands still or was set back: a server ignores a write
 * that changes nothing, and no other candidate would see the renewal.
 */
function microTime(wallMs: number, present: string | null | undefined): string {
  const milliseconds = new Date(wallMs).toISOString().slice(0, -1);
  const time = `${milliseconds}000Z`;
  return time === present ? `${milliseconds}001Z` : time;
}
