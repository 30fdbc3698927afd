/** Replaces the text between two offsets. */
export interface Splice {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** The text with all splices made; undefined if two of them overlap. Insertions at one place keep their order. */
export function applySplices(text: string, splices: readonly Splice[]): string | undefined {
  const ordered = [...splices].sort((left, right) => left.start - right.start || left.end - right.end);
  let result = '';
  let position = 0;
  for (const { start, end, text: replacement } of ordered) {
    if (start < position) return undefined;
    result += text.slice(position, start) + replacement;
    position = end;
  }
  return result + text.slice(position);
}
