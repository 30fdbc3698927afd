import type { StructuralSchema } from './structural-schema.ts';

/** Reserved words of CEL; a field of that name is written with two underscores around it. */
const RESERVED = new Set(
  (
    'true false null in as break const continue else for function if import let loop package namespace return var ' +
    'void while'
  ).split(' '),
);
const ESCAPES: Readonly<Record<string, string>> = {
  __: '__underscores__',
  '.': '__dot__',
  '-': '__dash__',
  '/': '__slash__',
};

/** The name of a field in a CEL rule: `a-b` is `a__dash__b`, `namespace` is `__namespace__`. */
export function celName(field: string): string {
  if (RESERVED.has(field)) return `__${field}__`;
  return field.replaceAll(/__|[./-]/g, (found) => ESCAPES[found] ?? found);
}

/**
 * A value as CEL rules see it: fields that the schema declares have the names of `celName`; keys of maps stay as they are. Shares
 * what it need not change.
 */
export function celView(schema: StructuralSchema, value: unknown): unknown {
  if (!hasEscapedNames(schema) || typeof value !== 'object' || value === null) return value;
  const { properties = {}, items, additionalProperties } = schema;
  if (Array.isArray(value)) return items === undefined ? value : value.map((item) => celView(items, item));
  const entries = Object.entries(value).map(([name, inner]) => {
    const field = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (field !== undefined) return [celName(name), celView(field, inner)] as const;
    return [name, typeof additionalProperties === 'object' ? celView(additionalProperties, inner) : inner] as const;
  });
  return Object.fromEntries(entries);
}

const known = new WeakMap<StructuralSchema, boolean>();

function hasEscapedNames(schema: StructuralSchema): boolean {
  const found = known.get(schema);
  if (found !== undefined) return found;
  const { properties = {}, items, additionalProperties } = schema;
  const inner = [...Object.values(properties), items, additionalProperties];
  const result =
    Object.keys(properties).some((name) => celName(name) !== name) ||
    inner.some((part) => typeof part === 'object' && hasEscapedNames(part));
  known.set(schema, result);
  return result;
}
