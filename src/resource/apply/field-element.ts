import { isJsonObject } from '../object/own-property.ts';

/**
 * One step of the path to a field, as FieldsV1 writes it: `f:spec` a field by its name, `k:{"name":"web"}` an item of a list by
 * its keys, `v:"blue"` an item of a set by its value, `i:3` an item by its index. Keys are sorted, so two elements are the
 * same if their texts are.
 */
export type FieldElement = string;

export type Scalar = string | number | boolean;

export function isScalar(value: unknown): value is Scalar {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

/** `fields` are pairs of a key's name and its value. */
export function keyElement(fields: readonly (readonly [string, Scalar])[]): FieldElement {
  const sorted = fields.length === 1 ? fields : fields.toSorted(([left], [right]) => (left < right ? -1 : 1));
  let text = 'k:{';
  for (const [name, value] of sorted)
    text += `${text.length > 3 ? ',' : ''}${JSON.stringify(name)}:${JSON.stringify(value)}`;
  return `${text}}`;
}

export function valueElement(value: Scalar): FieldElement {
  return `v:${JSON.stringify(value)}`;
}

/** Parses an element that a client wrote; undefined if it is invalid. */
export function readElement(text: string): FieldElement | undefined {
  if (text.startsWith('f:')) return text;
  if (text.startsWith('i:')) return /^i:\d{1,9}$/.test(text) ? text : undefined;
  if (!text.startsWith('k:') && !text.startsWith('v:')) return undefined;
  const value = parse(text.slice(2));
  if (text.startsWith('v:')) return isScalar(value) ? valueElement(value) : undefined;
  if (!isJsonObject(value)) return undefined;
  const fields: (readonly [string, Scalar])[] = [];
  for (const [name, part] of Object.entries(value)) {
    if (!isScalar(part)) return undefined;
    fields.push([name, part]);
  }
  return fields.length === 0 ? undefined : keyElement(fields);
}

/** Formats an element for messages: `.spec`, `[name="web"]`, `[="blue"]`, `[3]`. */
export function showElement(element: FieldElement): string {
  const text = element.slice(2);
  if (element.startsWith('f:')) return `.${text}`;
  if (element.startsWith('i:')) return `[${text}]`;
  if (element.startsWith('v:')) return `[=${text}]`;
  const fields = Object.entries(JSON.parse(text) as Record<string, Scalar>);
  return `[${fields.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(',')}]`;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
