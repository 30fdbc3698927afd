/** A text for a commit status of GitHub, which refuses characters that take four bytes in UTF-8, such as emoji. */
export function statusText(text: string): string {
  return text.toWellFormed().replaceAll(/[\u{10000}-\u{10ffff}]/gu, '\ufffd');
}
