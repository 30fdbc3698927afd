import { SluiceError } from '../../foundation/sluice-error.ts';
import type { KubernetesObject } from '../../resource/object/object.ts';
import type { ListResult } from '../../resource/storage/storage.ts';

/**
 * Checks the requested version of a list. Lists return the current state, so that "not older than" is satisfied for every existing
 * version: Timeout for a future one, Expired for an exact earlier state.
 */
export function checkVersion(
  { resourceVersion: current }: Pick<ListResult<KubernetesObject>, 'resourceVersion'>,
  query: URLSearchParams,
): void {
  const requested = query.get('resourceVersion') ?? '';
  checkNumber(requested);
  if (requested === '' || requested === '0' || requested === current || (query.get('continue') ?? '') !== '') return;
  if (isLaterVersion(requested, current))
    throw new SluiceError('Timeout', `Too large resource version: ${requested.slice(0, 40)}, current: ${current}`, {
      details: {
        causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
        retryAfterSeconds: 1,
      },
    });
  if (query.get('resourceVersionMatch') === 'Exact')
    throw new SluiceError('Expired', 'the state of that resourceVersion is not kept; list without "Exact"');
}

/** BadRequest for a version that no server of the Kubernetes API assigns. */
export function checkNumber(requested: string): void {
  if (requested === '' || /^\d{1,20}$/.test(requested)) return;
  const shown = JSON.stringify(requested.slice(0, 40));
  throw new SluiceError(
    'BadRequest',
    `invalid resource version: resourceVersion: Invalid value: ${shown}: it must be a number`,
  );
}

/**
 * True if one version is later than another. Versions are compared where both are numbers; other versions have no
 * order.
 */
export function isLaterVersion(given: string, current: string): boolean {
  if (!/^\d{1,19}$/.test(given) || !/^\d{1,19}$/.test(current)) return false;
  return BigInt(given) > BigInt(current);
}
