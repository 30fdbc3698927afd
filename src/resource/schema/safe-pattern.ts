import { compileExpression } from '../../expression/expression.ts';
import { isSluiceError } from '../../foundation/sluice-error.ts';

const MAX_PATTERN_LENGTH = 1024;
/** Matching takes time in proportion to the text; a text this long is no name or address. */
const MAX_TEXT_LENGTH = 65_536;

// Patterns of strangers run in CEL's engine: it has the syntax of RE2, as Kubernetes has, and never backtracks.
const matches = compileExpression('text.matches(pattern)', ['text', 'pattern']);

/** What is wrong with a pattern; undefined if it can be used. */
export function patternProblem(pattern: string): string | undefined {
  if (pattern.length > MAX_PATTERN_LENGTH) return `must have at most ${MAX_PATTERN_LENGTH} characters`;
  try {
    matches.test({ text: '', pattern });
    return undefined;
  } catch (error) {
    if (!isSluiceError(error)) throw error;
    return 'must be a regular expression in the syntax of RE2';
  }
}

/** True if the text has a part that the pattern describes. Texts beyond 64 Ki characters never do. */
export function matchesPattern(pattern: string, text: string): boolean {
  return text.length <= MAX_TEXT_LENGTH && matches.test({ text, pattern });
}
