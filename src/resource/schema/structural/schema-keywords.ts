const isText = (value: unknown) => typeof value === 'string';
const isFlag = (value: unknown) => typeof value === 'boolean';
const isNumber = (value: unknown) => typeof value === 'number' && Number.isFinite(value);
const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value);
const isTexts = (value: unknown) => Array.isArray(value) && value.every(isText);
const isList = (value: unknown) => Array.isArray(value) && value.length > 0;
const oneOf =
  (...values: readonly string[]) =>
  (value: unknown) =>
    typeof value === 'string' && values.includes(value);

const KEYWORDS: Readonly<Record<string, { readonly holds: (value: unknown) => boolean; readonly rule: string }>> = {
  ...rule(isText, 'must be a text', ['description', 'title', 'format', 'pattern']),
  ...rule(isFlag, 'must be true or false', [
    ...['nullable', 'exclusiveMinimum', 'exclusiveMaximum', 'uniqueItems', 'x-kubernetes-int-or-string'],
    ...['x-kubernetes-preserve-unknown-fields', 'x-kubernetes-embedded-resource'],
  ]),
  ...rule(isNumber, 'must be a number', ['minimum', 'maximum']),
  ...rule((value) => isNumber(value) && (value as number) > 0, 'must be a number above 0', ['multipleOf']),
  ...rule(isCount, 'must be a whole number, not below 0', [
    ...['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'],
  ]),
  ...rule(isTexts, 'must be a list of texts', ['required', 'x-kubernetes-list-map-keys']),
  ...rule(isList, 'must be a list with at least one item', ['enum', 'allOf', 'anyOf', 'oneOf']),
  ...rule(isObject, 'must be an object', ['properties', 'items', 'not', 'externalDocs']),
  ...rule((value) => isObject(value) || isFlag(value), 'must be a schema', ['additionalProperties']),
  ...rule(() => true, '', ['default', 'example']),
  ...rule((value) => Array.isArray(value) && value.every(isObject), 'must be a list of rules', [
    'x-kubernetes-validations',
  ]),
  ...rule(oneOf('object', 'array', 'string', 'integer', 'number', 'boolean'), 'must be a type', ['type']),
  ...rule(oneOf('atomic', 'set', 'map'), 'must be atomic, set or map', ['x-kubernetes-list-type']),
  ...rule(oneOf('atomic', 'granular'), 'must be atomic or granular', ['x-kubernetes-map-type']),
};

function rule(holds: (value: unknown) => boolean, text: string, keywords: readonly string[]) {
  return Object.fromEntries(keywords.map((keyword) => [keyword, { holds, rule: text }]));
}

/** Returns the error in one keyword of a schema; undefined if it is valid, apart from what a pattern contains. */
export function keywordProblem(keyword: string, value: unknown): string | undefined {
  if (!Object.hasOwn(KEYWORDS, keyword)) return 'has no place in a structural schema';
  const { holds, rule } = KEYWORDS[keyword] as (typeof KEYWORDS)[string];
  return holds(value) ? undefined : rule;
}
