import { SluiceError } from '../../foundation/sluice-error.ts';
import { isLabelValue, isQualifiedName } from '../object/name-rules.ts';

export type LabelOperator = 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';

export interface LabelRequirement {
  readonly key: string;
  readonly operator: LabelOperator;
  /** Sorted, without repetition; empty for Exists and DoesNotExist. */
  readonly values: readonly string[];
}

/** Creates a requirement after checking it; `where` is the path for the error. */
export function labelRequirement(
  key: string,
  operator: LabelOperator,
  values: readonly string[],
  where: string,
): LabelRequirement {
  const fail = (rule: string) => new SluiceError('InvalidInput', `label selector, ${where}: ${rule}`);
  if (!isQualifiedName(key))
    throw fail(`${JSON.stringify(key)} is no label key (a name, or a DNS name, "/" and a name)`);
  const bad = values.find((value) => !isLabelValue(value));
  if (bad !== undefined) throw fail(`${JSON.stringify(bad)} is no label value`);
  const takesValues = operator === 'In' || operator === 'NotIn';
  if (takesValues && values.length === 0) throw fail(`${operator} needs at least one value`);
  if (!takesValues && values.length > 0) throw fail(`${operator} takes no values`);
  return { key, operator, values: [...new Set(values)].sort() };
}
