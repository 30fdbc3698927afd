import { looksSecret } from '../../../../foundation/text/looks-secret.ts';
import { showValue } from '../../../../resource/object/invalid-object.ts';
import type { Resource } from '../../../resource/resource.ts';

/** True for a value from a Secret, or one that looks like a secret, by itself or by the name of its field or setter. */
export function isSecret(value: string, names: readonly string[], resource?: Resource): boolean {
  return resource?.kind === 'Secret' || looksSecret(value, names);
}

/** A value for the message of a result, which is stored and shown: in quotes and short, or `(hidden)` in place of a secret. */
export function shownValue(value: string, names: readonly string[], resource?: Resource): string {
  return isSecret(value, names, resource) ? '(hidden)' : showValue(value, { urlsOnly: true });
}
