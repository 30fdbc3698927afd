/** A command that a person can copy: words are quoted where a shell would need it, a data folder that was named is named again. */
export function commandLine(
  words: readonly string[],
  folder: { readonly shown: string; readonly isDefault: boolean },
): string {
  const data = folder.isDefault ? [] : ['--data', folder.shown];
  return ['sluice', ...words, ...data].map(quote).join(' ');
}

function quote(word: string): string {
  return /^[A-Za-z0-9_./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
