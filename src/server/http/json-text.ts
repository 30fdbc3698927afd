import { SluiceError } from '../../foundation/sluice-error.ts';
import { fieldPath } from '../../resource/object/invalid-object.ts';

export interface DecodedText {
  readonly value: unknown;
  /** Repeated fields, such as `spec.size`; the last one counts. */
  readonly duplicates: readonly string[];
}

/** Objects of the Kubernetes API are rarely deeper than 20 levels. */
const MAX_DEPTH = 100;
/** Values in one body, unless its kind has more. */
export const MAX_VALUES = 24_000;
const MAX_DUPLICATES = 20;

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/**
 * Reads untrusted JSON. `__proto__` becomes a property like any other. BadRequest for text that is no JSON or is nested too deeply,
 * LimitExceeded for too many values; both are checked before any value is built.
 */
export function decodeJson(text: string, maxValues = MAX_VALUES): DecodedText {
  const duplicates = scan(text, maxValues);
  try {
    return { value: JSON.parse(text), duplicates };
  } catch (error) {
    // The engine quotes the text, which may be a secret.
    const problem = (error as Error).message.replace(/, (?:\.\.\.)?".*$/s, '');
    throw new SluiceError('BadRequest', `the body is not valid JSON: ${problem}`);
  }
}

/** One level of nesting: the keys seen in an object, or the index in a list. */
interface Level {
  readonly keys: Set<string> | undefined;
  key: string | number;
  /** True where the next string of an object is a key. */
  expectsKey: boolean;
}

/** Scans the text once, with a stack of open levels only. The parser reports text that is no JSON. */
function scan(text: string, maxValues: number): string[] {
  const levels: Level[] = [];
  const duplicates: string[] = [];
  let values = 1;
  const count = () => {
    values += 1;
    if (values > maxValues)
      throw new SluiceError('LimitExceeded', `Request entity too large: the body has more than ${maxValues} values`);
  };
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    const level = levels.at(-1);
    if (code === QUOTE) {
      const end = endOfString(text, at);
      if (level?.expectsKey && level.keys !== undefined) takeKey(text.slice(at, end + 1), level, levels, duplicates);
      at = end;
    } else if (code === COMMA && level !== undefined) {
      count();
      if (level.keys === undefined) level.key = Number(level.key) + 1;
      else level.expectsKey = true;
    } else if (code === OPEN_OBJECT || code === OPEN_LIST) {
      if (levels.length >= MAX_DEPTH)
        throw new SluiceError('BadRequest', `the body is nested more than ${MAX_DEPTH} levels deep`);
      count();
      const isObject = code === OPEN_OBJECT;
      levels.push({ keys: isObject ? new Set() : undefined, key: isObject ? '' : 0, expectsKey: isObject });
    } else if (code === CLOSE_OBJECT || code === CLOSE_LIST) levels.pop();
  }
  return duplicates;
}

/** The place of the closing quote. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    // Long strings make up most of large bodies, so the engine does the search.
    const quote = text.indexOf('"', at);
    if (quote < 0) return text.length;
    let backslashes = 0;
    while (text.charCodeAt(quote - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return quote;
    at = quote;
  }
  return text.length;
}

function takeKey(raw: string, level: Level, levels: readonly Level[], duplicates: string[]): void {
  const key = raw.includes('\\') ? unescapedKey(raw) : raw.slice(1, -1);
  level.key = key;
  level.expectsKey = false;
  if (level.keys?.has(key) && duplicates.length < MAX_DUPLICATES)
    duplicates.push(fieldPath(levels.map(({ key: step }) => step)));
  level.keys?.add(key);
}

function unescapedKey(raw: string): string {
  try {
    return String(JSON.parse(raw));
  } catch {
    return raw;
  }
}
