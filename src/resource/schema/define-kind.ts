import { z } from 'zod';
import { causesOf, invalidObject, invalidValue } from '../object/invalid-object.ts';
import { DNS_SUBDOMAIN, type NameRule } from '../object/name-rules.ts';
import { apiVersionOf, type DeepReadonly, type GroupVersionKind, type ObjectMeta } from '../object/object.ts';
import { immutableCauses } from './immutable-fields.ts';
import type { Kind, Parsed } from './kind.ts';
import type { PrinterColumn, SelectableField } from './kind-schema.ts';
import { parseWithoutNulls } from './null-fields.ts';
import { metadataSchema } from './object-schema.ts';
import { unknownFields } from './unknown-fields.ts';
import { withUnknownSiblings } from './unknown-siblings.ts';
import { type WriteStrategy, writeStrategy } from './write-strategy.ts';

type Part<Key extends string, Type> = [Type] extends [never] ? unknown : { [K in Key]: Type };
type OptionalPart<Key extends string, Type> = [Type] extends [never] ? unknown : { [K in Key]?: Type | undefined };
/** For a shape without fields, zod's type forbids every key, so such a shape adds no fields. */
type FieldsPart<Fields, Type> = [keyof Fields] extends [never] ? unknown : Type;
type Flat<T> = { [Key in keyof T]: T[Key] };

type DefinedObject<Spec extends z.ZodType, Status extends z.ZodType, Fields extends z.ZodRawShape> = Flat<
  { readonly apiVersion: string; readonly kind: string; readonly metadata: ObjectMeta } & DeepReadonly<
    Part<'spec', z.output<Spec>> &
      OptionalPart<'status', z.output<Status>> &
      FieldsPart<Fields, z.output<z.ZodObject<Fields>>>
  >
>;

type DefinedInput<Spec extends z.ZodType, Fields extends z.ZodRawShape> = Flat<
  {
    readonly apiVersion?: string;
    readonly kind?: string;
    readonly metadata: Partial<ObjectMeta>;
  } & DeepReadonly<Part<'spec', z.input<Spec>> & FieldsPart<Fields, z.input<z.ZodObject<Fields>>>>
>;

export interface KindDefinition<Spec extends z.ZodType, Status extends z.ZodType, Fields extends z.ZodRawShape>
  extends GroupVersionKind {
  /** Lower case, as in a URL. */
  readonly plural: string;
  readonly singular?: string;
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  /** Default true. */
  readonly namespaced?: boolean;
  readonly description: string;
  readonly spec?: Spec;
  readonly status?: Status;
  /** Top-level fields besides spec and status, such as `data`. */
  readonly fields?: Fields;
  /** Default: a DNS sub-domain. */
  readonly nameRule?: NameRule;
  readonly sensitive?: boolean;
  readonly immutableFields?: readonly string[];
  readonly maxValues?: number;
  readonly compilesRules?: boolean;
  readonly printerColumns?: readonly PrinterColumn<DefinedObject<Spec, Status, Fields>>[];
  readonly selectableFields?: readonly SelectableField[];
  /**
   * Kind-specific behaviour of writes; `validateUpdate` runs in addition to `immutableFields`. A definition with a status has the
   * sub-resource.
   */
  readonly strategy?: Partial<Omit<WriteStrategy<DefinedObject<Spec, Status, Fields>>, 'hasStatus'>>;
}

/** Makes a kind from its names and zod schemas. Objects of the kind get their TypeScript type from them. */
export function defineKind<
  Spec extends z.ZodType = z.ZodNever,
  Status extends z.ZodType = z.ZodNever,
  // biome-ignore lint/complexity/noBannedTypes: no further fields is the empty shape
  Fields extends z.ZodRawShape = {},
>(
  definition: KindDefinition<Spec, Status, Fields>,
): Kind<DefinedObject<Spec, Status, Fields>, DefinedInput<Spec, Fields>> {
  type T = DefinedObject<Spec, Status, Fields>;
  const { group, version, kind, plural } = definition;
  const apiVersion = apiVersionOf(definition);
  const subject = group === '' ? kind : `${kind}.${group}`;
  const sensitive = definition.sensitive ?? false;
  const { immutableFields = [] } = definition;
  const strategy = writeStrategy<T>({
    ...definition.strategy,
    hasStatus: definition.status !== undefined,
    validateUpdate: (old, next) => [
      ...immutableCauses(immutableFields, old, next, sensitive),
      ...(definition.strategy?.validateUpdate?.(old, next) ?? []),
    ],
  });
  const nameRule = strategy.serverNamed ? undefined : (definition.nameRule ?? DNS_SUBDOMAIN);
  const fields: Record<string, z.ZodType> = {
    ...(definition.spec === undefined ? {} : { spec: definition.spec }),
    ...(definition.status === undefined ? {} : { status: definition.status.optional() }),
    ...(definition.fields as Record<string, z.ZodType> | undefined),
  };
  const schema = z.object({
    apiVersion: z.literal(apiVersion),
    kind: z.literal(kind),
    metadata: metadataSchema(nameRule),
    ...fields,
  });

  function parse(value: unknown, part?: 'status'): Parsed<T> {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw invalidObject(subject, [invalidValue([], value, 'expected object')]);
    const candidate: Record<string, unknown> = { apiVersion, kind, metadata: {}, ...value };
    const { result, checked } = parseWithoutNulls(schema, candidate);
    if (!result.success) {
      const causes = withUnknownSiblings(causesOf(result.error.issues, checked, sensitive), schema, candidate);
      throw invalidObject(`${subject}${nameForMessage(candidate)}`, causes);
    }
    const known = result.data as unknown as T;
    const object = strategy.canonicalize(known);
    const causes = part === 'status' ? [] : strategy.validate(object);
    if (causes.length > 0) throw invalidObject(`${subject}${nameForMessage(candidate)}`, causes);
    return { object, unknownFields: unknownFields(candidate, known) };
  }

  return {
    group,
    version,
    kind,
    apiVersion,
    plural,
    singular: definition.singular ?? kind.toLowerCase(),
    shortNames: definition.shortNames ?? [],
    categories: definition.categories ?? [],
    namespaced: definition.namespaced ?? true,
    description: definition.description,
    sensitive,
    strategy,
    printerColumns: definition.printerColumns ?? [],
    selectableFields: definition.selectableFields ?? [],
    fields,
    nameRule,
    immutableFields,
    parse,
    complete: (input) => parse(input).object,
    ...(definition.maxValues === undefined ? {} : { maxValues: definition.maxValues }),
    ...(definition.compilesRules === undefined ? {} : { compilesRules: definition.compilesRules }),
  };
}

function nameForMessage(candidate: Record<string, unknown>): string {
  const metadata = candidate.metadata;
  if (typeof metadata !== 'object' || metadata === null || !('name' in metadata)) return '';
  return typeof metadata.name === 'string' ? ` ${JSON.stringify(metadata.name)}` : '';
}
