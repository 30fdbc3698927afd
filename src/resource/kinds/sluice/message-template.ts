import { z } from 'zod';

/** Of the JSON text. Teams accepts messages of 28 KiB. */
const MAX_TEMPLATE_CHARACTERS = 16_384;
const MAX_TEMPLATE_DEPTH = 16;
/** Each value has at most 1,024 characters, so this bounds the body. */
const MAX_PLACEHOLDERS = 32;

/** What placeholders may name. Secrets and settings of the Notification are not among them. */
const TEMPLATE_FIELDS = [
  'event.id',
  'event.time',
  'event.type',
  'event.reason',
  'event.message',
  'event.count',
  'event.source',
  'object.apiVersion',
  'object.kind',
  'object.namespace',
  'object.name',
] as const;

export type TemplateField = (typeof TEMPLATE_FIELDS)[number];

/** Text as it is, or the value of a field. */
export type TemplatePart = { readonly text: string } | { readonly field: string; readonly isKnown: boolean };

/** `$${` stands for `${`. A placeholder without an end extends to the end, and is of no known field. */
const PLACEHOLDER = /\$\$\{|\$\{([^}]*)(\}?)/g;

/** The parts of a string of a template, in order. `known` are the fields that it may name. */
export function templateParts(text: string, known: readonly string[] = TEMPLATE_FIELDS): TemplatePart[] {
  const parts: TemplatePart[] = [];
  let end = 0;
  for (const { index, 0: whole, 1: field, 2: close } of text.matchAll(PLACEHOLDER)) {
    if (index > end) parts.push({ text: text.slice(end, index) });
    if (field === undefined) parts.push({ text: '${' });
    else parts.push({ field, isKnown: close === '}' && known.includes(field) });
    end = index + whole.length;
  }
  if (end < text.length) parts.push({ text: text.slice(end) });
  return parts;
}

/** The body of a message as JSON, in whose strings placeholders stand for fields of the event. It contains data only and no expressions. */
export const messageTemplateSchema = z.record(z.string(), z.unknown()).superRefine((template, context) => {
  const report = (path: PropertyKey[], message: string) => context.addIssue({ code: 'custom', path, message });
  let placeholders = 0;
  const checkText = (text: string, path: PropertyKey[]) => {
    for (const part of templateParts(text)) {
      if ('text' in part) continue;
      placeholders += 1;
      if (part.isKnown || placeholders > MAX_PLACEHOLDERS) continue;
      const name = JSON.stringify(part.field.slice(0, 100));
      report(
        path,
        `has a placeholder of ${name}; known are ${TEMPLATE_FIELDS.join(', ')}; write $\${ for the characters \${`,
      );
      return;
    }
  };
  const check = (value: unknown, path: PropertyKey[]): void => {
    if (path.length > MAX_TEMPLATE_DEPTH) report([], `must have at most ${MAX_TEMPLATE_DEPTH} levels`);
    else if (typeof value === 'string') checkText(value, path);
    else if (Array.isArray(value)) for (const [index, inner] of value.entries()) check(inner, [...path, index]);
    else if (typeof value === 'object' && value !== null) {
      for (const [key, inner] of Object.entries(value)) {
        if (key.includes('${')) report([...path, key], 'is a key with a placeholder; only values may have them');
        check(inner, [...path, key]);
      }
    }
  };
  if (JSON.stringify(template).length > MAX_TEMPLATE_CHARACTERS)
    return report([], `must have at most ${MAX_TEMPLATE_CHARACTERS} characters as JSON`);
  check(template, []);
  if (placeholders > MAX_PLACEHOLDERS) report([], `must have at most ${MAX_PLACEHOLDERS} placeholders`);
});
