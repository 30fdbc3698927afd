/** Makes foreign text safe for a message: no user or password in URLs, no control characters, no marks that reorder text, bounded. */
export function cleanText(text: string): string {
  return text
    .replace(/([a-z][a-z0-9+.-]*:\/\/)[^\s/@]*@/gi, '$1')
    .replace(/\x1b\[[0-9;?]*[ -/]*[@-~]/g, '')
    .replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, '')
    .trim()
    .slice(0, 2000);
}

/** Joins lines that a server wrote for users to one line for a message. */
export function toOneLine(lines: readonly string[]): string {
  return (
    lines
      .map((line) => cleanText(line))
      // Hosts mark each line as an error, also empty ones.
      .filter((line) => line !== '' && !/^(?:error|fatal|warning):$/.test(line))
      .join(' / ')
      .slice(0, 2000)
  );
}
