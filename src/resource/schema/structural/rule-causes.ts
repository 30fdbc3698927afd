import { compileExpression, type Expression } from '../../../expression/expression.ts';
import { isSluiceError } from '../../../foundation/sluice-error.ts';
import { cpuMilliseconds } from '../../../foundation/time/cpu-time.ts';
import { type FieldCause, fieldPath } from '../../object/invalid-object.ts';
import { celView } from './cel-view.ts';
import { invalid } from './keyword-rules.ts';
import type { StructuralSchema, ValidationRule } from './structural-schema.ts';
import { isTransitionRule, RULE_LIMITS, ruleExpression } from './validation-rules.ts';

type Path = readonly (string | number)[];
type Json = Readonly<Record<string, unknown>>;

/** Maximum number of evaluated rules per object: they run without yielding. */
const MAX_RUNS = 5000;
/** Of processor time. */
const MAX_CPU_MS = 100;
const MAX_CAUSES = 100;

/**
 * Returns the violations of the CEL rules of a schema for a structurally valid value. Without `old` it evaluates the rules about
 * one state, with `old` the transition rules (those that use `oldSelf`), wherever both states have the field: fields by name, items
 * of a list of type map by their keys. Items of other lists have no previous state.
 */
export function ruleCauses(schema: StructuralSchema, value: unknown, change?: { readonly old: unknown }): FieldCause[] {
  if (!hasRules(schema)) return [];
  const walk = new RuleWalk(change !== undefined);
  walk.evaluate(schema, value, change?.old, []);
  return walk.causes;
}

class RuleWalk {
  readonly causes: FieldCause[] = [];
  readonly #changes: boolean;
  readonly #deadline = cpuMilliseconds() + MAX_CPU_MS;
  #runs = 0;

  constructor(changes: boolean) {
    this.#changes = changes;
  }

  evaluate(schema: StructuralSchema, value: unknown, old: unknown, path: Path): void {
    if (!hasRules(schema) || value === undefined || value === null || (this.#changes && old === undefined)) return;
    const rules = schema['x-kubernetes-validations']?.filter((rule) => isTransitionRule(rule) === this.#changes) ?? [];
    if (rules.length > 0) {
      const self = celView(schema, value);
      const bindings = this.#changes ? { self, oldSelf: celView(schema, old) } : { self };
      for (const rule of rules) this.#run(rule, bindings, value, path);
    }
    if (Array.isArray(value)) this.#items(schema, value, old, path);
    else if (typeof value === 'object')
      for (const [name, inner] of Object.entries(value)) {
        const field = fieldSchema(schema, name);
        if (field !== undefined) this.evaluate(field, inner, fieldOf(old, name), [...path, name]);
      }
  }

  #items(schema: StructuralSchema, items: readonly unknown[], old: unknown, path: Path): void {
    const { items: inner } = schema;
    if (inner === undefined || !hasRules(inner)) return;
    const keys = schema['x-kubernetes-list-map-keys'];
    const before = new Map(
      keys === undefined || !Array.isArray(old) ? [] : old.map((item) => [identity(item, keys), item]),
    );
    for (const [index, item] of items.entries())
      this.evaluate(inner, item, keys === undefined ? undefined : before.get(identity(item, keys)), [...path, index]);
  }

  #run(rule: ValidationRule, bindings: { readonly self: unknown }, value: unknown, path: Path): void {
    this.#runs += 1;
    if (this.causes.length >= MAX_CAUSES) return;
    if (this.#runs > MAX_RUNS || cpuMilliseconds() > this.#deadline) {
      if (this.#runs !== Number.POSITIVE_INFINITY)
        this.#add(path, 'Invalid value: its rules cost too much to evaluate');
      this.#runs = Number.POSITIVE_INFINITY;
      return;
    }
    try {
      if (!ruleExpression(rule).test(bindings))
        this.#add(placeOf(rule, path), invalid(value, messageOf(rule, bindings.self)));
    } catch (error) {
      if (!isSluiceError(error)) throw error;
      this.#add(path, invalid(value, `rule cannot be evaluated:  ${error.message}`));
    }
  }

  #add(path: Path, message: string): void {
    this.causes.push({ field: fieldPath(path), message, path });
  }
}

/** `fieldPath` of a rule is relative: `.spec.name`, `['a.b']`. */
function placeOf({ fieldPath: below }: ValidationRule, path: Path): Path {
  const steps = below?.matchAll(/\.([A-Za-z_][\w-]*)|\['([^']*)'\]/g) ?? [];
  return [...path, ...[...steps].map(([, plain, quoted]) => plain ?? quoted ?? '')];
}

function messageOf(rule: ValidationRule, self: unknown): string {
  const given =
    rule.messageExpression === undefined
      ? undefined
      : evaluate(compileExpression(rule.messageExpression, ['self'], RULE_LIMITS), self);
  return given ?? rule.message ?? `failed rule: ${rule.rule}`;
}

/** A message that cannot be made must not hide that the rule is broken. */
function evaluate(expression: Expression, self: unknown): string | undefined {
  try {
    const text = expression.evaluate({ self });
    return typeof text === 'string' && text.trim() !== '' ? text.replaceAll(/\s+/g, ' ') : undefined;
  } catch (error) {
    if (!isSluiceError(error)) throw error;
    return undefined;
  }
}

const known = new WeakMap<StructuralSchema, boolean>();

/** True if the schema or a nested one has rules; other parts of an object need not be walked. */
function hasRules(schema: StructuralSchema): boolean {
  const found = known.get(schema);
  if (found !== undefined) return found;
  const { items, additionalProperties, properties = {} } = schema;
  const inner = [...Object.values(properties), items, additionalProperties];
  const result =
    (schema['x-kubernetes-validations']?.length ?? 0) > 0 ||
    inner.some((part) => typeof part === 'object' && hasRules(part));
  known.set(schema, result);
  return result;
}

function fieldSchema(
  { properties, additionalProperties }: StructuralSchema,
  name: string,
): StructuralSchema | undefined {
  if (properties !== undefined && Object.hasOwn(properties, name)) return properties[name];
  return typeof additionalProperties === 'object' ? additionalProperties : undefined;
}

function fieldOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Json)[name];
}

function identity(item: unknown, keys: readonly string[]): string {
  return JSON.stringify(keys.map((key) => fieldOf(item, key) ?? null));
}
