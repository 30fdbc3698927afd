import { z } from 'zod';
import { type LabelOperator, type LabelRequirement, labelRequirement } from './label-requirement.ts';
import { parseLabelRequirements } from './label-selector-text.ts';

/** A parsed label selector: all requirements must match; without requirements it selects everything. */
export interface LabelSelector {
  readonly requirements: readonly LabelRequirement[];
}

export const EVERYTHING: LabelSelector = { requirements: [] };

/** The schema of a label selector in an object: matchLabels and matchExpressions. */
export const labelSelectorSchema = z.object({
  matchLabels: z.record(z.string(), z.string()).optional().describe('Labels that must be there with these values.'),
  matchExpressions: z
    .array(
      z.object({
        key: z.string().describe('Key of a label.'),
        operator: z
          .enum(['In', 'NotIn', 'Exists', 'DoesNotExist'])
          .describe('How the label is compared: In, NotIn, Exists or DoesNotExist.'),
        values: z.array(z.string()).optional().describe('For In and NotIn: the values to compare with.'),
      }),
    )
    .optional()
    .describe('Further requirements; all must hold.'),
});

/** A label selector as a field of an object. */
export interface LabelSelectorObject {
  readonly matchLabels?: Readonly<Record<string, string>> | undefined;
  readonly matchExpressions?:
    | readonly {
        readonly key: string;
        readonly operator: LabelOperator;
        readonly values?: readonly string[] | undefined;
      }[]
    | undefined;
}

/**
 * A selector from text, `app=web,tier in (a,b),!legacy`, or from an object with matchLabels and matchExpressions. An
 * empty text and an empty object select everything. Throws InvalidInput that names the place or the field.
 */
export function labelSelector(source: string | LabelSelectorObject): LabelSelector {
  if (typeof source === 'string') return { requirements: parseLabelRequirements(source) };
  const requirements: LabelRequirement[] = [];
  for (const [key, value] of Object.entries(source.matchLabels ?? {}))
    requirements.push(labelRequirement(key, 'In', [value], `matchLabels[${key}]`));
  for (const [index, { key, operator, values }] of (source.matchExpressions ?? []).entries())
    requirements.push(labelRequirement(key, operator, values ?? [], `matchExpressions[${index}]`));
  return { requirements };
}

/** True if the labels match every requirement. NotIn (and `!=`) also matches objects without the label. */
export function matchesLabels(selector: LabelSelector, labels: Readonly<Record<string, string>> | undefined): boolean {
  return selector.requirements.every(({ key, operator, values }) => {
    const value = labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined;
    if (operator === 'In') return value !== undefined && values.includes(value);
    if (operator === 'NotIn') return value === undefined || !values.includes(value);
    return operator === 'Exists' ? value !== undefined : value === undefined;
  });
}

/** The text form; `labelSelector` reads it back as the same requirements. */
export function formatLabelSelector(selector: LabelSelector): string {
  return selector.requirements
    .map(({ key, operator, values }) => {
      if (operator === 'Exists') return key;
      if (operator === 'DoesNotExist') return `!${key}`;
      if (operator === 'In' && values.length === 1) return `${key}=${values[0]}`;
      return `${key} ${operator === 'In' ? 'in' : 'notin'} (${values.join(',')})`;
    })
    .join(',');
}
