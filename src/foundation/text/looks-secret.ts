/** Names of fields and setters with secret values. */
const SECRET_NAME = /passw|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|credential|bearer/i;

/** Private keys, signed tokens, and the tokens of AWS, GitHub, Slack and others, which have a recognisable format. */
const SECRET_VALUE =
  /-----BEGIN [A-Z ]+-----|\beyJ[\w-]+\.eyJ|\bAKIA[0-9A-Z]{16}|\bgh[pousr]_\w{36}|\bgithub_pat_|\bxox[abprs]-|\bsk-[\w-]{20}/;

/** Tokens are at the beginning of a shown value; a longer search is not worth its time. */
const MAX_SEARCHED_CHARACTERS = 4096;

/** True for a value that looks like a secret, by itself or by the names of its field or setter. */
export function looksSecret(value: string, names: readonly string[]): boolean {
  return SECRET_VALUE.test(value.slice(0, MAX_SEARCHED_CHARACTERS)) || names.some((name) => SECRET_NAME.test(name));
}
