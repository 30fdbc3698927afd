/** Marks that reorder the text after them, so that a message could be read as another one. */
const DIRECTION_MARKS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** A text of a user for messages of Sluice, with the marks that reorder text as escapes such as `\u202e`. */
export function withVisibleDirection(text: string): string {
  return text.replace(DIRECTION_MARKS, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
