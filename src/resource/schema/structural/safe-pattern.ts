import { RE2JS, RE2JSException } from 're2js';
import { LruCache } from '../../../foundation/lru-cache.ts';

const MAX_PATTERN_LENGTH = 1024;
/** Matching takes time in proportion to the text; a text this long is no name or address. */
const MAX_TEXT_LENGTH = 65_536;

/**
 * Patterns that are in use, ready to match: making one ready takes far longer than matching a name. Few, as what a hostile one remembers
 * while it matches may grow to 8 MB.
 */
const MAX_COMPILED = 64;
const compiled = new LruCache<string, RE2JS>({ maxEntries: MAX_COMPILED });

/** Returns why a pattern cannot be used; undefined if it can. */
export function patternProblem(pattern: string): string | undefined {
  if (pattern.length > MAX_PATTERN_LENGTH) return `must have at most ${MAX_PATTERN_LENGTH} characters`;
  try {
    compile(pattern);
    return undefined;
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error;
    return 'must be a regular expression in the syntax of RE2';
  }
}

/** True if the text has a part that the pattern describes. Texts beyond 64 Ki characters never do. */
export function matchesPattern(pattern: string, text: string): boolean {
  return text.length <= MAX_TEXT_LENGTH && compile(pattern).matcher(text).find();
}

// Patterns of strangers run in an engine that has the syntax of RE2, as Kubernetes has, and never backtracks.
function compile(pattern: string): RE2JS {
  const found = compiled.get(pattern);
  if (found !== undefined) return found;
  const made = RE2JS.compile(pattern);
  // Only repetitions with a count make a short pattern large.
  if (!pattern.includes('{')) compiled.set(pattern, made);
  return made;
}
