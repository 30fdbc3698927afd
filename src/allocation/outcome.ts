import type { OwnerKey } from './claim.ts';
import type { Range } from './ipv4.ts';
import type { Pool } from './pool.ts';

export type AllocationRefusalReason =
  | 'PoolExhausted'
  | 'AddressConflict'
  | 'NoMatchingPool'
  | 'InvalidClaim'
  | 'AwaitingRelease';

export interface AllocationRefusal {
  readonly reason: AllocationRefusalReason;
  readonly message: string;
  /** Time at which a retry may succeed without a change. Milliseconds since the epoch. */
  readonly retryAt?: number;
  /** The owner of the requested fixed value. */
  readonly holder?: OwnerKey;
}

export interface Allocated {
  /** As in the status of an IPClaim: address with the length of its subnet, or the claimed prefix. */
  readonly prefix: string;
  readonly gateway?: string;
  readonly range: Range;
  readonly pool: Pool;
  /** The rule that chose the value. */
  readonly how: 'held' | 'fixed' | 'index' | 'status' | 'lowest';
}

export type AllocationOutcome =
  | { readonly allocated: Allocated; readonly refused?: undefined }
  | { readonly refused: AllocationRefusal; readonly allocated?: undefined };

export function refusedFor(
  reason: AllocationRefusalReason,
  message: string,
  retryAt?: number,
  holder?: OwnerKey,
): AllocationOutcome {
  return {
    refused: {
      reason,
      message,
      ...(retryAt === undefined ? {} : { retryAt }),
      ...(holder === undefined ? {} : { holder }),
    },
  };
}
