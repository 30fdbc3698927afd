import { createRequire } from 'node:module';
import type { RE2JS } from 're2js';
import { LruCache } from '../lru-cache.ts';
import { messageOf, SluiceError } from '../sluice-error.ts';
import { patternSize } from './pattern-size.ts';

/** Parts of a pattern (`patternSize`). As many compile in 20 ms, even the first time, and need less than a megabyte. */
const MAX_SIZE = 2000;
/** Parts of a pattern times characters of a text, each of which a match may have to compare: some 40 ms. */
const MAX_MATCH = 2_000_000;
/** What a pattern may remember about texts; beyond, matching goes on without memory. The library's default is 8 MB. */
const MAX_STATES_BYTES = 128 * 1024;
/** Of one part, in a compiled pattern. */
const PART_BYTES = 512;
const MAX_CACHED_BYTES = 32 * 1024 * 1024;

const require = createRequire(import.meta.url);

interface Compiled {
  readonly regex: RE2JS;
  /** Parts. */
  readonly size: number;
}

/** Of all users together: making a pattern ready takes far longer than matching a name. */
const cache = new LruCache<string, Compiled>({ maxSize: MAX_CACHED_BYTES });

/**
 * A regular expression of a user in the syntax of RE2, which takes time in proportion to its size and the text. Throws InvalidInput that names
 * `where`, also for one that would be too large once it is compiled.
 */
export function linearRegex(pattern: string, where: string): RE2JS {
  return compiled(pattern, where).regex;
}

/**
 * True if a part of the text is what the pattern describes. Throws as `linearRegex`, and LimitExceeded for a text that is too long for the size
 * of the pattern.
 */
export function matchesPattern(pattern: string, text: string, where: string): boolean {
  const { regex, size } = compiled(pattern, where);
  if (text.length * size > MAX_MATCH)
    throw new SluiceError('LimitExceeded', `${where}: a text of ${text.length} characters is too long for its pattern`);
  return regex.test(text);
}

function compiled(pattern: string, where: string): Compiled {
  const found = cache.get(pattern);
  if (found !== undefined) return found;
  const size = patternSize(pattern);
  if (size > MAX_SIZE)
    throw new SluiceError(
      'InvalidInput',
      `${where}: a regular expression has at most ${MAX_SIZE} parts, and this one has ${size}: repeat fewer characters, or fewer times`,
    );
  const made = { regex: compile(pattern, where), size };
  cache.set(pattern, made, MAX_STATES_BYTES + size * PART_BYTES);
  return made;
}

function compile(pattern: string, where: string): RE2JS {
  try {
    // Read when it is needed: it is large, and few configurations have a pattern that is no plain text.
    const regex = (require('re2js') as typeof import('re2js')).RE2JS.compile(pattern);
    const { dfa } = regex.re2();
    dfa.memBudget = MAX_STATES_BYTES;
    dfa.stateBudget = MAX_STATES_BYTES;
    return regex;
  } catch (error) {
    throw new SluiceError('InvalidInput', `${where}: ${messageOf(error)}`, { cause: error });
  }
}
