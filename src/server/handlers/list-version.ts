import { SluiceError } from '../../foundation/sluice-error.ts';
import type { KubernetesObject } from '../../resource/object/object.ts';
import type { ListResult } from '../../resource/storage/storage.ts';

/**
 * Judges the version that a list was asked for. Lists show the present state, so that "not older than" holds for every version that
 * was ever given out: Timeout for one that is yet to come, Expired for an exact state that is gone.
 */
export function checkVersion(
  { resourceVersion: current }: Pick<ListResult<KubernetesObject>, 'resourceVersion'>,
  query: URLSearchParams,
): void {
  const asked = query.get('resourceVersion') ?? '';
  if (asked === '' || asked === '0' || asked === current || (query.get('continue') ?? '') !== '') return;
  if (isLaterVersion(asked, current))
    throw new SluiceError('Timeout', `Too large resource version: ${asked.slice(0, 40)}, current: ${current}`, {
      details: {
        causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
        retryAfterSeconds: 1,
      },
    });
  if (query.get('resourceVersionMatch') === 'Exact')
    throw new SluiceError('Expired', 'the state of that resourceVersion is not kept; list without "Exact"');
}

/** True if one version is later than another. Versions are compared where both are numbers; others have no order. */
export function isLaterVersion(given: string, current: string): boolean {
  if (!/^\d{1,19}$/.test(given) || !/^\d{1,19}$/.test(current)) return false;
  return BigInt(given) > BigInt(current);
}
