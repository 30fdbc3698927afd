/**
 * CR alone, NEL, LS and PS are line breaks in YAML 1.1 and for some readers of 1.2; for others they are part of a comment or of a
 * text.
 */
const UNUSUAL_BREAK = /\r(?!\n)|[\u0085\u2028\u2029]/;
/** A directive changes how what follows is read, such as by the rules of YAML 1.1. */
const DIRECTIVE = /^\uFEFF?%/m;

/**
 * False for YAML that readers take for different values: what is a comment to one of them is a field to another. Of such a file each
 * byte counts.
 */
export function readsAlike(data: Uint8Array): boolean {
  const text = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('utf8');
  return !UNUSUAL_BREAK.test(text) && !DIRECTIVE.test(text);
}
