import { createHash } from 'node:crypto';

/** 128 bits: names of targets come from users. */
const DIGEST_CHARACTERS = 32;

/**
 * The key that sorts a target: a digest of the salt and its identity, the same for every plan with this salt. Of a label, its value comes
 * first, and targets without it last.
 */
export function orderKey(id: string, salt: string, label?: { readonly value: string | undefined }): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([salt, id]))
    .digest('hex')
    .slice(0, DIGEST_CHARACTERS);
  if (label === undefined) return digest;
  // U+0020 sorts before every character of a label.
  return label.value === undefined ? `~ ${digest}` : `${label.value} ${digest}`;
}
