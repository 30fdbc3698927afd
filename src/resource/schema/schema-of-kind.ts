import { z } from 'zod';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { immutableMessage } from './immutable-fields.ts';
import type { KindSchema } from './kind-schema.ts';
import { OBJECT_META_SCHEMA } from './object-meta-schema.ts';
import { celName } from './structural/cel-view.ts';
import { structuralFromZod } from './structural/structural-from-zod.ts';
import { structuralProblems } from './structural/structural-problems.ts';
import type { StructuralSchema, ValidationRule } from './structural/structural-schema.ts';

const known = new WeakMap<KindSchema, StructuralSchema>();

/**
 * The structural schema of the whole object of a kind, with apiVersion, kind and metadata. Made once per kind. Throws
 * Internal if the kind has no structural schema, which is a defect of the kind.
 */
export function structuralSchemaOf(kind: KindSchema): StructuralSchema {
  const found = known.get(kind);
  if (found !== undefined) return found;
  const schema = kind.schema ?? derive(kind);
  known.set(kind, schema);
  return schema;
}

function derive(kind: KindSchema): StructuralSchema {
  const { properties = {}, required } = structuralFromZod(z.object(kind.fields));
  let schema = wholeObject(kind.description, { properties, ...(required === undefined ? {} : { required }) });
  for (const path of kind.immutableFields) schema = withImmutable(schema, path.split('.'), path);
  assertStructural(schema);
  return schema;
}

/** Puts what every object has around the fields of a kind. */
export function wholeObject(description: string, fields: StructuralSchema): StructuralSchema {
  return {
    type: 'object',
    description,
    ...fields,
    properties: {
      apiVersion: { type: 'string', description: 'Group and version of the kind, as in group/v1.' },
      kind: { type: 'string', description: 'Name of the kind.' },
      metadata: OBJECT_META_SCHEMA,
      ...fields.properties,
    },
  };
}

function withImmutable(schema: StructuralSchema, steps: readonly string[], path: string): StructuralSchema {
  const message = immutableMessage(path);
  const [step, ...rest] = steps;
  if (step === undefined) return withRule(schema, { rule: 'self == oldSelf', message });
  const inner = schema.properties?.[step];
  if (inner === undefined) return schema;
  const next = { ...schema, properties: { ...schema.properties, [step]: withImmutable(inner, rest, path) } };
  if (schema.required?.includes(step) || inner.default !== undefined) return next;
  // A rule of a field does not apply where the field is removed, after which another value could be set.
  const field = celName(step);
  return withRule(next, { rule: `!has(oldSelf.${field}) || has(self.${field})`, message });
}

/** A rule that several paths need is there once. */
function withRule(schema: StructuralSchema, rule: ValidationRule): StructuralSchema {
  const rules = schema['x-kubernetes-validations'] ?? [];
  if (rules.some((known) => known.rule === rule.rule)) return schema;
  return { ...schema, 'x-kubernetes-validations': [...rules, rule] };
}

/** Throws Internal if the schema of a kind of our own is not structural. */
function assertStructural(schema: StructuralSchema): void {
  const problems = structuralProblems(schema).map(({ field, message }) => `${field}: ${message}`);
  if (problems.length > 0) throw new SluiceError('Internal', `the schema is not structural: ${problems.join('; ')}`);
}
