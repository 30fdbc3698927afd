import { SluiceError } from '../../src/foundation/sluice-error.ts';

const MAX_DEPTH = 100;
const HIDDEN = '***';
/** A shorter text may be part of values that have nothing to do with the secret. */
const MIN_CHARACTERS = 8;

/**
 * Replaces secrets in all texts of a response. It happens before values are selected, cut and quoted, since afterwards a part of a secret
 * could remain that is not found. Throws InvalidInput for a value that is nested too deep.
 */
export function hideSecrets(value: unknown, secrets: readonly string[], depth = 0): unknown {
  const hidden = depth === 0 ? secrets.filter(({ length }) => length >= MIN_CHARACTERS) : secrets;
  if (hidden.length === 0) return value;
  if (typeof value === 'string') return withoutSecrets(value, hidden);
  if (typeof value !== 'object' || value === null) return value;
  if (depth === MAX_DEPTH)
    throw new SluiceError(
      'InvalidInput',
      `the response cannot be used: it is nested more than ${MAX_DEPTH} levels deep`,
    );
  if (Array.isArray(value)) return value.map((inner) => hideSecrets(inner, hidden, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [withoutSecrets(key, hidden), hideSecrets(inner, hidden, depth + 1)]),
  );
}

/** The text with each secret replaced. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets.reduce((hidden, secret) => hidden.replaceAll(secret, HIDDEN), text);
}
