import { z } from 'zod';
import { retryConflicts } from '../../foundation/concurrency/retry-conflicts.ts';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import type { Client } from '../../resource/client/client.ts';
import { configMapKind } from '../../resource/kinds/core/config-map.ts';

/** The ConfigMap with the first version that no process has reserved. */
export const VERSIONS_NAME = 'sluice-resource-versions';
const NEXT = 'next';
/** Versions of one term: at 1,000 changes per second they last two years. */
const BLOCK_VERSIONS = 2n ** 36n;

const nextSchema = z.string().regex(/^\d{1,19}$/);

/**
 * Reserves the resource versions of the package kinds for one term of a leader, and returns the first of them. It is larger than each version
 * of all earlier terms, whatever clocks the leaders had, and at least the present time in microseconds: a version names one state of one
 * object even if the ConfigMap is lost. A leader whose lease has expired continues in its own block, so that two leaders never use the same.
 */
export function reserveVersions(client: Client, namespace: string, nowMs: number): Promise<bigint> {
  const key = { namespace, name: VERSIONS_NAME };
  return retryConflicts(
    async () => {
      const present = await client.find(configMapKind, key);
      const next = nextSchema.optional().safeParse(present?.data?.[NEXT]);
      if (!next.success)
        throw new SluiceError(
          'Corrupt',
          `cannot reserve resource versions: ConfigMap ${namespace}/${VERSIONS_NAME} has no number in ${NEXT}; delete it`,
        );
      const reserved = BigInt(next.data ?? '0');
      const now = BigInt(Math.trunc(nowMs)) * 1000n;
      const start = now > reserved ? now : reserved;
      const data = { [NEXT]: String(start + BLOCK_VERSIONS) };
      if (present === undefined) await client.create(configMapKind, { metadata: key, data });
      else await client.update(configMapKind, { ...present, data });
      return start;
    },
    { isConflict: (error) => isSluiceError(error, 'Conflict') || isSluiceError(error, 'AlreadyExists') },
  );
}
