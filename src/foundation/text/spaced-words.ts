/** The words of a code in CamelCase, as a text begins: `NotRolledBack` is "Not rolled back". Other texts stay as they are. */
export function spacedWords(code: string): string {
  if (!/^[A-Z][A-Za-z0-9]*$/.test(code)) return code;
  const words = code.split(/(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/);
  // What has capitals only is an abbreviation.
  return words.map((word, at) => (at === 0 || /^[A-Z0-9]{2,}$/.test(word) ? word : word.toLowerCase())).join(' ');
}
