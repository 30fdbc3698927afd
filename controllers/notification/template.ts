import { type TemplateField, templateParts } from '../../src/resource/kinds/sluice/message-template.ts';
import { escapeValue, type Format, type Place } from './escape-value.ts';
import type { Message } from './message.ts';

export type Template = Readonly<Record<string, unknown>>;

/**
 * The body that a template describes: a copy whose placeholders are replaced. A value is only ever a part of one string, so it cannot change
 * the structure, and what a value contains is not searched for placeholders again.
 */
export function withValues(template: Template, format: Format, message: Message): unknown {
  const values = valuesOf(message);
  const fill = (value: unknown, isRun: boolean): unknown => {
    if (typeof value === 'string') {
      const place: Place = /^https?:\/\//i.test(value) ? 'address' : isRun ? 'plain' : 'text';
      return templateParts(value)
        .map((part) => {
          if ('text' in part) return part.text;
          const known = part.isKnown ? values[part.field as TemplateField] : '';
          return escapeValue(known, format, place);
        })
        .join('');
    }
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return value.map((inner) => fill(inner, isRun));
    const isTextRun = (value as { readonly type?: unknown }).type === 'TextRun';
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, fill(inner, isTextRun)]));
  };
  return fill(template, false);
}

function valuesOf({ object, ...event }: Message): Readonly<Record<TemplateField, string>> {
  return {
    'event.id': event.id,
    'event.time': event.time,
    'event.type': event.type,
    'event.reason': event.reason,
    'event.message': event.message,
    'event.count': String(event.count),
    'event.source': event.source,
    'object.apiVersion': object.apiVersion,
    'object.kind': object.kind,
    'object.namespace': object.namespace,
    'object.name': object.name,
  };
}
