import { z } from 'zod';
import { repeatSilentRequest } from '../../foundation/concurrency/repeat-silent-request.ts';
import { retryConflicts } from '../../foundation/concurrency/retry-conflicts.ts';
import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { sleep } from '../../foundation/time/backoff.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { Client } from '../../resource/client/client.ts';
import { configMapKind } from '../../resource/kinds/core/config-map.ts';
import type { EventLog } from '../../resource/watch/event-log.ts';

/** The ConfigMap with the first version that no process has reserved. */
export const VERSIONS_NAME = 'sluice-resource-versions';
const NEXT = 'next';
/**
 * Versions of one block. As many microseconds are 17 seconds, about the duration of a lease, so that versions do not run ahead of the clock
 * however often the leader changes; at 1,000 changes per second a block lasts for four hours.
 */
const BLOCK_VERSIONS = 2n ** 24n;
/** Milliseconds between two checks of how many versions of the block are left. */
const CHECK_INTERVAL_MS = 10_000;

const nextSchema = z.string().regex(/^\d{1,19}$/);

/**
 * Reserves a block of resource versions of the package kinds for a leader, and returns the first of them. It is larger than each version of
 * all earlier blocks, whatever clocks the leaders had, at least the present time in microseconds, and at least `lowest`: a version names one
 * state of one object even if the ConfigMap is lost. Two leaders never have the same block, also where the lease of one has expired.
 */
export function reserveVersions(client: Client, namespace: string, nowMs: number, lowest = 0n): Promise<bigint> {
  const key = { namespace, name: VERSIONS_NAME };
  // A leader that waits for a response serves nothing. An attempt whose outcome is unknown can be repeated: it reads again.
  const attempt = () =>
    repeatSilentRequest(async (signal) => {
      const present = await client.find(configMapKind, key, { signal });
      const next = nextSchema.optional().safeParse(present?.data?.[NEXT]);
      if (!next.success)
        throw new SluiceError(
          'Corrupt',
          `cannot reserve resource versions: ConfigMap ${namespace}/${VERSIONS_NAME} has no number in ${NEXT}; delete it`,
        );
      const reserved = BigInt(next.data ?? '0');
      const now = BigInt(Math.trunc(nowMs)) * 1000n;
      const start = [reserved, lowest].reduce((one, other) => (one > other ? one : other), now);
      const data = { [NEXT]: String(start + BLOCK_VERSIONS) };
      if (present === undefined) await client.create(configMapKind, { metadata: key, data }, { signal });
      else await client.update(configMapKind, { ...present, data }, { signal });
      return start;
    });
  return retryConflicts(attempt, {
    isConflict: (error) => isSluiceError(error, 'Conflict') || isSluiceError(error, 'AlreadyExists'),
  });
}

export interface VersionRenewal {
  readonly client: Client;
  readonly clock: Clock;
  readonly namespace: string;
  /** The log whose versions are from a block. */
  readonly log: Pick<EventLog, 'version' | 'skipTo'>;
  /** Ends the renewals. */
  readonly signal: AbortSignal;
  readonly warn: (subject: string, message: string) => void;
}

/** Continues the log in another block whenever half of the present one is used. Resolves when the signal has aborted. */
export async function renewVersions({ client, clock, namespace, log, signal, warn }: VersionRenewal): Promise<void> {
  let start = BigInt(log.version);
  while (!signal.aborted) {
    await sleep(clock, CHECK_INTERVAL_MS, signal);
    if (signal.aborted || BigInt(log.version) - start < BLOCK_VERSIONS / 2n) continue;
    try {
      start = await reserveVersions(client, namespace, clock.now(), BigInt(log.version) + 1n);
      log.skipTo(start);
    } catch (error) {
      warn('resource versions', `cannot reserve more: ${messageOf(error)}; retrying`);
    }
  }
}
