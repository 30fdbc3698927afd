import { SluiceError } from '../../src/foundation/sluice-error.ts';

const MAX_DEPTH = 100;
const HIDDEN = '***';
/** A shorter text may be part of values that have nothing to do with the secret. */
const MIN_CHARACTERS = 8;

/**
 * Replaces a secret in all texts of a response. It happens before values are selected, cut and quoted, since afterwards a part of the secret
 * could remain that is not found. Throws InvalidInput for a value that is nested too deep.
 */
export function hideSecret(value: unknown, secret: string | undefined, depth = 0): unknown {
  if (secret === undefined || secret.length < MIN_CHARACTERS) return value;
  if (typeof value === 'string') return value.replaceAll(secret, HIDDEN);
  if (typeof value !== 'object' || value === null) return value;
  if (depth === MAX_DEPTH)
    throw new SluiceError(
      'InvalidInput',
      `the response cannot be used: it is nested more than ${MAX_DEPTH} levels deep`,
    );
  if (Array.isArray(value)) return value.map((inner) => hideSecret(inner, secret, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key.replaceAll(secret, HIDDEN), hideSecret(inner, secret, depth + 1)]),
  );
}
