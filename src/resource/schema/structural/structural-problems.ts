import { patternSize } from '../../../foundation/text/pattern-size.ts';
import { type FieldCause, fieldPath, REQUIRED_VALUE } from '../../object/invalid-object.ts';
import { patternProblem } from './safe-pattern.ts';
import { keywordProblem } from './schema-keywords.ts';
import type { StructuralSchema, ValidationRule } from './structural-schema.ts';
import { MAX_RULE_CHARACTERS, MAX_RULES, ruleProblem } from './validation-rules.ts';

const MAX_DEPTH = 64;
const MAX_NODES = 20_000;
/** Parts of all different patterns of a schema, which compile in some 50 ms. */
const MAX_PATTERN_PARTS = 20_000;
const SCALARS = new Set(['string', 'integer', 'number', 'boolean']);
const JUNCTORS = ['allOf', 'anyOf', 'oneOf'] as const;
/** Keywords that declare the structure of a value and thus must be outside of junctors. */
const SHAPE_KEYWORDS = [
  ...['type', 'description', 'default', 'nullable', 'additionalProperties', 'title', 'x-kubernetes-embedded-resource'],
  ...['x-kubernetes-int-or-string', 'x-kubernetes-preserve-unknown-fields', 'x-kubernetes-validations'],
  ...['x-kubernetes-list-type', 'x-kubernetes-list-map-keys', 'x-kubernetes-map-type'],
];

type Path = readonly (string | number)[];
type Json = Readonly<Record<string, unknown>>;

/**
 * Returns the errors that make a value no structural schema, each with its path below `at`: the rules that a kube-apiserver
 * has for CustomResourceDefinitions, and limits on size and depth.
 */
export function structuralProblems(schema: unknown, at: Path = []): FieldCause[] {
  return new SchemaValidator().check(schema, at);
}

class SchemaValidator {
  readonly #causes: FieldCause[] = [];
  #nodes = 0;
  #rules = 0;
  #ruleCharacters = 0;
  readonly #patterns = new Set<unknown>();
  #patternParts = 0;

  check(schema: unknown, at: Path): FieldCause[] {
    if (this.#node(schema, at, 0) && (schema as StructuralSchema).type !== 'object')
      this.#add([...at, 'type'], 'must be object at the root');
    return this.#causes;
  }

  #add(path: Path, rule: string): void {
    const message = rule === REQUIRED_VALUE ? rule : `Forbidden: ${rule}`;
    this.#causes.push({ field: fieldPath(path), message, path });
  }

  /** False if the value is no schema at all, so that it has no further problems to report. */
  #isSchema(schema: unknown, path: Path, depth: number): schema is StructuralSchema & Json {
    this.#nodes += 1;
    const rule =
      typeof schema !== 'object' || schema === null || Array.isArray(schema)
        ? 'must be a schema'
        : depth > MAX_DEPTH
          ? `is nested more than ${MAX_DEPTH} levels deep`
          : this.#nodes === MAX_NODES
            ? `the schema has more than ${MAX_NODES} parts`
            : undefined;
    if (rule !== undefined) this.#add(path, rule);
    if (rule !== undefined || this.#nodes > MAX_NODES) return false;
    const problems = Object.entries(schema as object).map(
      ([key, value]) =>
        [key, keywordProblem(key, value) ?? (key === 'pattern' ? this.#pattern(value as string) : undefined)] as const,
    );
    const bad = problems.filter(([, problem]) => problem !== undefined);
    for (const [key, problem] of bad) this.#add([...path, key], problem ?? '');
    return bad.length === 0;
  }

  /** The first pattern beyond the limit is a problem, the checks skip later ones. */
  #pattern(pattern: string): string | undefined {
    if (this.#patternParts > MAX_PATTERN_PARTS || this.#patterns.has(pattern)) return undefined;
    this.#patterns.add(pattern);
    const problem = patternProblem(pattern);
    this.#patternParts += patternSize(pattern);
    if (problem !== undefined || this.#patternParts <= MAX_PATTERN_PARTS) return problem;
    return `the schema has patterns of more than ${MAX_PATTERN_PARTS} parts`;
  }

  #node(schema: unknown, path: Path, depth: number): boolean {
    if (!this.#isSchema(schema, path, depth)) return false;
    this.#shape(schema, path);
    this.#lists(schema, path);
    const { properties, items, additionalProperties } = schema;
    for (const [name, inner] of Object.entries(properties ?? {}))
      this.#node(inner, [...path, 'properties', name], depth + 1);
    if (items !== undefined) this.#node(items, [...path, 'items'], depth + 1);
    if (typeof additionalProperties === 'object')
      this.#node(additionalProperties, [...path, 'additionalProperties'], depth + 1);
    this.#junctors(schema, schema, path, depth);
    for (const [index, rule] of (schema['x-kubernetes-validations'] ?? []).entries())
      this.#rule(rule, [...path, 'x-kubernetes-validations', index, 'rule']);
    return true;
  }

  /** The first rule beyond a limit is a problem, the checks skip later ones. */
  #rule(rule: ValidationRule, path: Path): void {
    const wasTooMuch = this.#hasTooManyRules();
    this.#rules += 1;
    this.#ruleCharacters += String(rule.rule).length + String(rule.messageExpression ?? '').length;
    if (wasTooMuch) return;
    const problem = this.#hasTooManyRules()
      ? `the schema has more than ${MAX_RULES} rules, or more than ${MAX_RULE_CHARACTERS} characters of rules`
      : ruleProblem(rule);
    if (problem !== undefined) this.#add(path, problem);
  }

  #hasTooManyRules(): boolean {
    return this.#rules > MAX_RULES || this.#ruleCharacters > MAX_RULE_CHARACTERS;
  }

  #shape(schema: StructuralSchema, path: Path): void {
    const { type, properties, items, additionalProperties } = schema;
    const intOrString = schema['x-kubernetes-int-or-string'] === true;
    if (intOrString && type !== undefined)
      this.#add([...path, 'type'], 'must be empty beside x-kubernetes-int-or-string');
    if (type === undefined && !intOrString && schema['x-kubernetes-preserve-unknown-fields'] !== true)
      this.#add([...path, 'type'], REQUIRED_VALUE);
    if (properties !== undefined && additionalProperties !== undefined)
      this.#add([...path, 'additionalProperties'], 'must not be combined with properties');
    if (additionalProperties === false) this.#add([...path, 'additionalProperties'], 'must not be false');
    if (type === 'array' && items === undefined) this.#add([...path, 'items'], REQUIRED_VALUE);
    for (const key of ['properties', 'additionalProperties'] as const)
      if (schema[key] !== undefined && type !== 'object') this.#add([...path, key], 'wants type object');
    if (items !== undefined && type !== 'array') this.#add([...path, 'items'], 'wants type array');
    if (schema['x-kubernetes-embedded-resource'] === true && type !== 'object')
      this.#add([...path, 'x-kubernetes-embedded-resource'], 'wants type object');
    if (schema['x-kubernetes-map-type'] !== undefined && type !== 'object')
      this.#add([...path, 'x-kubernetes-map-type'], 'wants type object');
  }

  #lists(schema: StructuralSchema, path: Path): void {
    const { type, items, uniqueItems } = schema;
    const listType = schema['x-kubernetes-list-type'];
    const keys = schema['x-kubernetes-list-map-keys'];
    if (uniqueItems === true) this.#add([...path, 'uniqueItems'], 'must not be true; use x-kubernetes-list-type: set');
    if (listType !== undefined && type !== 'array') this.#add([...path, 'x-kubernetes-list-type'], 'wants type array');
    if (listType !== 'map' && keys !== undefined)
      this.#add([...path, 'x-kubernetes-list-map-keys'], 'wants x-kubernetes-list-type: map');
    if (listType === 'set' && items !== undefined && !isSetItem(items))
      this.#add([...path, 'items'], 'must be a scalar, or atomic, in a list of type set');
    if (listType !== 'map') return;
    if (keys === undefined || keys.length === 0) {
      this.#add([...path, 'x-kubernetes-list-map-keys'], REQUIRED_VALUE);
      return;
    }
    if (items?.type !== 'object') this.#add([...path, 'items', 'type'], 'must be object in a list of type map');
    for (const [index, key] of keys.entries()) {
      const properties = items?.properties ?? {};
      const field = Object.hasOwn(properties, key) ? properties[key] : undefined;
      const place = [...path, 'x-kubernetes-list-map-keys', index];
      if (field === undefined || !SCALARS.has(String(field.type)))
        this.#add(place, `${JSON.stringify(key)} must be a scalar field of the items`);
      else if (field.default === undefined && !items?.required?.includes(key))
        this.#add(place, `${JSON.stringify(key)} must be required in the items, or have a default`);
    }
  }

  /** Junctors and `not` may only validate values, and only of fields that are declared outside of them. */
  #junctors(schema: StructuralSchema, outside: StructuralSchema | undefined, path: Path, depth: number): void {
    for (const key of JUNCTORS)
      for (const [index, inner] of (schema[key] ?? []).entries())
        this.#validation(inner, outside, [...path, key, index], depth + 1);
    if (schema.not !== undefined) this.#validation(schema.not, outside, [...path, 'not'], depth + 1);
  }

  #validation(schema: unknown, outside: StructuralSchema | undefined, path: Path, depth: number): void {
    if (!this.#isSchema(schema, path, depth)) return;
    const mayTellType = outside?.['x-kubernetes-int-or-string'] === true;
    for (const key of SHAPE_KEYWORDS)
      if (schema[key] !== undefined && !(mayTellType && key === 'type'))
        this.#add([...path, key], 'must be outside of allOf, anyOf, oneOf and not');
    for (const [name, inner] of Object.entries(schema.properties ?? {})) {
      const place = [...path, 'properties', name];
      const properties = outside?.properties ?? {};
      const declared = Object.hasOwn(properties, name) ? properties[name] : valuesOf(outside);
      if (declared === undefined && outside?.['x-kubernetes-preserve-unknown-fields'] !== true)
        this.#add(place, 'must be outside of allOf, anyOf, oneOf and not too');
      this.#validation(inner, declared, place, depth + 1);
    }
    if (schema.items !== undefined) {
      if (outside?.items === undefined)
        this.#add([...path, 'items'], 'must be outside of allOf, anyOf, oneOf and not too');
      this.#validation(schema.items, outside?.items, [...path, 'items'], depth + 1);
    }
    this.#junctors(schema, outside, path, depth);
  }
}

function valuesOf(schema: StructuralSchema | undefined): StructuralSchema | undefined {
  return typeof schema?.additionalProperties === 'object' ? schema.additionalProperties : undefined;
}

function isSetItem(items: StructuralSchema): boolean {
  if (SCALARS.has(String(items.type))) return true;
  if (items.type === 'object') return items['x-kubernetes-map-type'] === 'atomic';
  return items.type === 'array' && (items['x-kubernetes-list-type'] ?? 'atomic') === 'atomic';
}
