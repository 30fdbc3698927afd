import { type FieldCause, fieldPath, REQUIRED_VALUE } from '../../object/invalid-object.ts';
import { brokenKeywords, invalid, isOfType } from './keyword-rules.ts';
import type { StructuralSchema } from './structural-schema.ts';

type Path = readonly (string | number)[];
type Json = Readonly<Record<string, unknown>>;

export interface ValidationResult {
  /** The value with defaults and without unknown fields; shares no part with the input. */
  readonly value: unknown;
  readonly unknownFields: readonly Path[];
  readonly causes: readonly FieldCause[];
}

const MAX_DEPTH = 100;
/** Every value and every schema that is laid on it counts one. */
const MAX_STEPS = 1_000_000;
const MAX_CAUSES = 100;

/**
 * Adds defaults, removes unknown fields and validates, in one walk over a structural schema. `ruleCauses` evaluates CEL rules
 * afterwards, if the value is valid. The time is bounded whatever the schema and the value: nesting beyond 100 levels and more than
 * a million steps are causes.
 */
export function validateValue(schema: StructuralSchema, value: unknown, at: Path = []): ValidationResult {
  return new Walk(at).run(schema, value);
}

class Walk {
  readonly #unknown: Path[] = [];
  readonly #path: (string | number)[];
  readonly #maxDepth: number;
  #causes: FieldCause[] = [];
  #steps = 0;

  constructor(at: Path) {
    this.#path = [...at];
    this.#maxDepth = at.length + MAX_DEPTH;
  }

  run(schema: StructuralSchema, value: unknown): ValidationResult {
    const checked = this.#visit(schema, value);
    // Reported here, since the causes of a branch that was only tried are dropped.
    if (this.#steps > MAX_STEPS)
      this.#causes.push({ field: '', message: 'Invalid value: too large to be validated', path: [] });
    return { value: checked, unknownFields: this.#unknown, causes: this.#causes };
  }

  #visit(schema: StructuralSchema, value: unknown): unknown {
    if (!this.#step()) return undefined;
    if (value === null && schema.nullable === true) return null;
    if (!this.#hasType(schema, value)) return undefined;
    let result = value;
    if (Array.isArray(value)) result = this.#array(schema, value);
    else if (typeof value === 'object' && value !== null) result = this.#object(schema, value as Json);
    this.#values(schema, result);
    return result;
  }

  #object(schema: StructuralSchema, given: Json): Record<string, unknown> {
    const result: Record<string, unknown> = {};
    const { properties } = schema;
    for (const name in properties) {
      const inner = properties[name] as StructuralSchema;
      let value = Object.hasOwn(given, name) ? given[name] : undefined;
      // A null where none is allowed counts as not given.
      if (value === null && inner.nullable !== true) value = undefined;
      value ??= value === null ? null : inner.default;
      if (value !== undefined) this.#within(name, () => put(result, name, this.#visit(inner, value)));
    }
    for (const name of Object.keys(given))
      if (properties === undefined || !Object.hasOwn(properties, name))
        this.#within(name, () => this.#other(schema, given[name], name, result));
    return result;
  }

  /** Handles a field without a schema. */
  #other(schema: StructuralSchema, value: unknown, name: string, result: Record<string, unknown>): void {
    const { additionalProperties } = schema;
    if (value === undefined) return;
    if (typeof additionalProperties === 'object') {
      if (value !== null || additionalProperties.nullable === true)
        put(result, name, this.#visit(additionalProperties, value));
    } else if (additionalProperties === true || isKept(schema, name)) put(result, name, this.#copy(value));
    else if (value !== null) this.#unknown.push([...this.#path]);
  }

  #array(schema: StructuralSchema, given: readonly unknown[]): unknown[] {
    const { items } = schema;
    return given.map((item, index) => {
      this.#path.push(index);
      const result = items === undefined ? this.#copy(item) : this.#visit(items, item);
      this.#path.pop();
      return result;
    });
  }

  #copy(value: unknown): unknown {
    if (!this.#step() || typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return this.#array({}, value);
    const result: Record<string, unknown> = {};
    for (const [name, inner] of Object.entries(value)) this.#within(name, () => put(result, name, this.#copy(inner)));
    return result;
  }

  #hasType(schema: StructuralSchema, value: unknown): boolean {
    const expected = schema['x-kubernetes-int-or-string'] === true ? 'integer or string' : schema.type;
    if (expected === undefined || isOfType(expected, value)) return true;
    this.#add(invalid(value, `expected ${expected}`));
    return false;
  }

  /** The constraints of a schema besides the shape of the value. */
  #values(schema: StructuralSchema, value: unknown): void {
    if (schema.required !== undefined && typeof value === 'object' && value !== null && !Array.isArray(value)) {
      for (const name of schema.required)
        if (!Object.hasOwn(value, name)) this.#within(name, () => this.#add(REQUIRED_VALUE));
    }
    for (const { message, index } of brokenKeywords(schema, value)) {
      if (index === undefined) this.#add(message);
      else this.#within(index, () => this.#add(message));
    }
    const { allOf, anyOf, oneOf, not } = schema;
    if (allOf !== undefined) for (const inner of allOf) this.#validate(inner, value);
    // The keyword int-or-string validates this itself.
    if (anyOf !== undefined && !anyOf.some((inner) => this.#isValid(inner, value)))
      this.#add(invalid(value, 'must match at least one of the allowed forms (anyOf)'));
    if (oneOf !== undefined && oneOf.filter((inner) => this.#isValid(inner, value)).length !== 1)
      this.#add(invalid(value, 'must match exactly one of the allowed forms (oneOf)'));
    if (not !== undefined && this.#isValid(not, value))
      this.#add(invalid(value, 'has a form that is not allowed (not)'));
  }

  /** Validates without defaults and pruning: inside of allOf, anyOf, oneOf and not. */
  #validate(schema: StructuralSchema, value: unknown): void {
    if (!this.#step()) return;
    if (!this.#hasType(schema, value)) return;
    if (Array.isArray(value)) {
      const { items } = schema;
      if (items !== undefined)
        for (const [index, item] of value.entries()) this.#within(index, () => this.#validate(items, item));
    } else if (typeof value === 'object' && value !== null) {
      for (const [name, inner] of Object.entries(schema.properties ?? {}))
        if (Object.hasOwn(value, name)) this.#within(name, () => this.#validate(inner, (value as Json)[name]));
    }
    this.#values(schema, value);
  }

  #isValid(schema: StructuralSchema, value: unknown): boolean {
    const outer = this.#causes;
    this.#causes = [];
    this.#validate(schema, value);
    const holds = this.#causes.length === 0;
    this.#causes = outer;
    return holds;
  }

  #step(): boolean {
    this.#steps += 1;
    if (this.#path.length <= this.#maxDepth) return this.#steps <= MAX_STEPS;
    this.#add(`Invalid value: nested more than ${MAX_DEPTH} levels deep`);
    return false;
  }

  #within(step: string | number, action: () => void): void {
    this.#path.push(step);
    action();
    this.#path.pop();
  }

  #add(message: string): void {
    if (this.#causes.length < MAX_CAUSES)
      this.#causes.push({ field: fieldPath(this.#path), message, path: [...this.#path] });
  }
}

/** Fields that stay although the schema does not declare them. */
function isKept(schema: StructuralSchema, name: string): boolean {
  if (schema['x-kubernetes-preserve-unknown-fields'] === true) return true;
  return schema['x-kubernetes-embedded-resource'] === true && ['apiVersion', 'kind', 'metadata'].includes(name);
}

/** A field named __proto__ is a field like any other. */
function put(target: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') target[name] = value;
  else Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
}
