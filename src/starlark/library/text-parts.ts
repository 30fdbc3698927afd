import type { Value } from '../values/value.ts';
import { wantInt } from './arguments.ts';

/** The range of a search with `start` and `end` as its second and third arguments; empty if the first is above the second. */
export function searchRange(
  name: string,
  text: string,
  [, start = null, end = null]: readonly Value[],
): [number, number] {
  const { length } = text;
  const place = (value: Value, without: number, parameter: number) => {
    if (value === null) return without;
    const at = wantInt(name, value, parameter);
    return Math.max(at < 0 ? at + length : at, 0);
  };
  return [place(start, 0, 2), Math.min(place(end, length, 3), length)];
}

/** Without characters of a set, or white space, at the ends. */
export function stripped(text: string, characters: string | undefined, start: boolean, end: boolean): string {
  const set = characters === undefined ? undefined : new Set(characters);
  const goes = (character: string) => (set === undefined ? /\s/u.test(character) : set.has(character));
  let from = 0;
  let to = text.length;
  if (start) {
    for (const character of text) {
      if (!goes(character)) break;
      from += character.length;
    }
  }
  if (end)
    while (to > from) {
      const low = text.charCodeAt(to - 1);
      const size = low >= 0xdc00 && low <= 0xdfff && to - 2 >= from ? 2 : 1;
      if (!goes(text.slice(to - size, to))) break;
      to -= size;
    }
  return text.slice(from, to);
}

/** At every separator, or at most `limit` of them if that is not negative, counted from the end on request. */
export function splitText(text: string, separator: string, limit: number, fromEnd: boolean): string[] {
  const parts = text.split(separator);
  if (limit < 0 || parts.length - 1 <= limit) return parts;
  if (fromEnd) {
    const kept = parts.length - limit;
    return [parts.slice(0, kept).join(separator), ...parts.slice(kept)];
  }
  return [...parts.slice(0, limit), parts.slice(limit).join(separator)];
}

/**
 * Splits at white space. The last part keeps the white space at its end, or at its start when splitting from the end.
 */
export function splitWhitespace(text: string, limit: number, fromEnd: boolean): string[] {
  const words = [...text.matchAll(/\S+/gu)];
  if (limit < 0 || words.length - 1 <= limit) return words.map(([word]) => word);
  if (fromEnd) {
    const first = words[words.length - limit - 1] as RegExpExecArray;
    return [text.slice(0, first.index + first[0].length), ...words.slice(words.length - limit).map(([word]) => word)];
  }
  const rest = words[limit] as RegExpExecArray;
  return [...words.slice(0, limit).map(([word]) => word), text.slice(rest.index)];
}
