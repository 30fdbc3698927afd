/** The beginning of a text, of at most so many UTF-16 code units, that ends between characters: hosts reject half of a surrogate pair, or keep another one. */
export function shorten(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  const last = text.charCodeAt(maxLength - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? maxLength - 1 : maxLength);
}

/** As `shorten`, with an ellipsis in place of what is missing. */
export function ellipsize(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : `${shorten(text, maxLength - 1)}…`;
}
