/** The documents of a YAML file, each from its `---`, if it has one, up to the next. Together they are the text. */
export function splitDocuments(text: string): string[] {
  const starts = [...text.matchAll(/(?<=^|\n)---(?=\s|$)/g)].map((match) => match.index);
  if (starts[0] !== 0) starts.unshift(0);
  return starts.map((start, at) => text.slice(start, starts[at + 1]));
}

/** True for a document of blanks and comments only. */
export function isBlankDocument(text: string): boolean {
  return text
    .split('\n')
    .every((line, at) => /^\s*(?:#.*)?$/.test(line) || (at === 0 && /^---\s*(?:#.*)?$/.test(line)));
}

/** A file of documents; puts `---` between them where it is missing. */
export function joinDocuments(parts: readonly string[]): string {
  let text = '';
  for (const part of parts) {
    const eol = text.includes('\r\n') ? '\r\n' : '\n';
    if (text !== '' && !text.endsWith('\n')) text += eol;
    if (text !== '' && !part.startsWith('---') && part.trim() !== '') text += `---${eol}`;
    text += part;
  }
  return text;
}
