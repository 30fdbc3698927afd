import { z } from 'zod';
import { templateParts } from './message-template.ts';

const MAX_PLACEHOLDERS = 32;

/** What placeholders in the title and text of a pull request may name. */
export const REVIEW_FIELDS = [
  'name',
  'namespace',
  'repository',
  'package',
  'workspace',
  'proposer',
  'upstream',
  'policy',
] as const;

export type ReviewField = (typeof REVIEW_FIELDS)[number];

/** A text in which placeholders stand for fields of a proposal. It contains no expressions, and no markers of Sluice. */
export function reviewTemplateSchema(maxCharacters: number) {
  return z
    .string()
    .min(1)
    .max(maxCharacters)
    .superRefine((text, context) => {
      const report = (message: string) => context.addIssue({ code: 'custom', message });
      if (text.includes('<!-- sluice:')) return report('must not contain the characters <!-- sluice:');
      const fields = templateParts(text, REVIEW_FIELDS).filter((part) => 'field' in part);
      const unknown = fields.find(({ isKnown }) => !isKnown);
      if (unknown !== undefined) {
        const name = JSON.stringify(unknown.field.slice(0, 100));
        report(
          `has a placeholder of ${name}; known are ${REVIEW_FIELDS.join(', ')}; write $\${ for the characters \${`,
        );
      } else if (fields.length > MAX_PLACEHOLDERS) report(`must have at most ${MAX_PLACEHOLDERS} placeholders`);
    });
}
