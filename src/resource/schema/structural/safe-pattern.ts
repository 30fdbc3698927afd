import { isSluiceError, messageOf } from '../../../foundation/sluice-error.ts';
import { linearRegex, matchesPattern } from '../../../foundation/text/linear-regex.ts';

const WHERE = 'pattern';

/** Returns why a pattern cannot be used; undefined if it can. */
export function patternProblem(pattern: string): string | undefined {
  try {
    linearRegex(pattern, WHERE);
    return undefined;
  } catch (error) {
    if (!isSluiceError(error, 'InvalidInput')) throw error;
    return `must be a regular expression in the syntax of RE2: ${error.message}`;
  }
}

/** Returns why a text does not have a part that a pattern describes; undefined if it has one. */
export function patternMismatch(pattern: string, text: string): string | undefined {
  try {
    return matchesPattern(pattern, text, WHERE) ? undefined : `must match ${JSON.stringify(pattern)}`;
  } catch (error) {
    if (!isSluiceError(error)) throw error;
    return messageOf(error);
  }
}
