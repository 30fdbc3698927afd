// A regular expression such as /\/+$/ takes quadratic time for text with a long run of these characters that is not at its end.

/** Returns the text without the characters of `characters` at its end. */
export function trimEndOf(text: string, characters: string): string {
  let end = text.length;
  while (end > 0 && characters.includes(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
}

/** Returns the text without the characters of `characters` at both ends. */
export function trimEndsOf(text: string, characters: string): string {
  const trimmed = trimEndOf(text, characters);
  let start = 0;
  while (start < trimmed.length && characters.includes(trimmed.charAt(start))) start += 1;
  return trimmed.slice(start);
}
