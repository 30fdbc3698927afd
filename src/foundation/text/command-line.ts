/** A command that a person can copy: words are in quotes where a shell would need them. */
export function commandLine(words: readonly string[]): string {
  return words.map(quote).join(' ');
}

function quote(word: string): string {
  return /^[A-Za-z0-9_./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
