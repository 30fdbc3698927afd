import { type FunctionVersion, isBefore } from '../../model/function-version.ts';

/**
 * The differences between the published versions of apply-replacements, which come from their versions of kustomize.
 */
export interface ReplacementRules {
  /** A target field that does not exist is skipped without a message; else it is an error. */
  readonly skipsMissing: boolean;
  /** `[name=web]` in a target is the first item with exactly that text; else all whose text the regular expression is found in. */
  readonly exactItems: boolean;
  /** A scalar that is copied over another one keeps its own type; else it takes the type of what it replaces. */
  readonly keepsSourceType: boolean;
  /** The fields of a `select` are exact texts; else regular expressions for the whole text. */
  readonly literalSelects: boolean;
}

export function rulesOf(version: FunctionVersion | undefined): ReplacementRules {
  const isFirst = isBefore(version, '0.1.2');
  return {
    skipsMissing: isFirst,
    exactItems: isFirst,
    keepsSourceType: isFirst,
    literalSelects: isBefore(version, '0.1.3'),
  };
}
