import { z } from 'zod';
import { causesOf, type FieldCause, invalidObject, invalidValue } from '../object/invalid-object.ts';
import { DNS_SUBDOMAIN, type NameRule } from '../object/name-rules.ts';
import {
  apiVersionOf,
  type DeepReadonly,
  type GroupVersionKind,
  type KubernetesObject,
  type ObjectMeta,
} from '../object/object.ts';
import { immutableCauses } from './immutable-fields.ts';
import { parseWithoutNulls } from './null-fields.ts';
import { metadataSchema } from './object-schema.ts';
import type { StructuralSchema } from './structural/structural-schema.ts';
import { unknownFields } from './unknown-fields.ts';

/** A column of `get`. */
export interface PrinterColumn<T> {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  readonly description?: string;
  /** 0 is always shown, others in the wide table only. */
  readonly priority?: number;
  /** Where the value stands, for clients that show objects without this code: `.spec.git.branch`. Absent if no path leads to it. */
  readonly jsonPath?: string;
  value(object: T): string | number | boolean | undefined;
}

/** A field that a field selector may name. */
export interface SelectableField {
  /** `spec.repository`; `spec.labels[*]` allows any key in the brackets. */
  readonly path: string;
  /** What an object without the field counts as. Default: the empty string. */
  readonly missing?: string;
  /** The only permitted values; others are refused. */
  readonly values?: readonly string[];
}

/** What `parse` found: the object with defaults, and unknown fields, which are left out of the object. */
export interface Parsed<T> {
  readonly object: T;
  /** Field paths such as `spec.gti`. */
  readonly unknownFields: readonly (readonly (string | number)[])[];
}

/**
 * A kind of objects: its names, its schema and how it is shown. `T` is the type of its objects, `Input` what a client
 * writes to create one (fields with a default may be left out).
 */
export interface Kind<T extends KubernetesObject = KubernetesObject, Input = unknown> extends GroupVersionKind {
  readonly apiVersion: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  readonly description: string;
  /** True if names are derived from the content: what a client gives is ignored. */
  readonly serverNamed: boolean;
  /** True if values must not be printed. */
  readonly sensitive: boolean;
  /** True if the status is written through a sub-resource only. */
  readonly hasStatus: boolean;
  /** True if an update does not conflict with writes of the status since its author read the object. */
  readonly updatesIgnoreStatusWrites?: boolean;
  readonly printerColumns: readonly PrinterColumn<T>[];
  readonly selectableFields: readonly SelectableField[];
  /** Schemas of the top-level fields besides apiVersion, kind and metadata, for documentation and publishing. */
  readonly fields: Readonly<Record<string, z.ZodType>>;
  /** The structural schema of the whole object, where it is not derived from `fields`: kinds that users define. */
  readonly schema?: StructuralSchema;
  /** The rule for names; undefined if the server makes them. */
  readonly nameRule: NameRule | undefined;
  /** Fields that keep their first value, such as `spec.git.repo`. */
  readonly immutableFields: readonly string[];
  /** Values that an object may have besides managedFields, those inside of others included, where that is not 8,000. */
  readonly maxValues?: number;
  /** True if objects hold CEL rules that are compiled when one is judged. */
  readonly compilesRules?: boolean;
  /** True if a client that replaces an object over the API must name its version. Default false. */
  readonly updatesNeedVersion?: boolean;

  /**
   * Judges a value from outside. apiVersion and kind may be missing and are then filled in.
   * Throws InvalidInput with InvalidObjectDetails: every cause, with its field.
   */
  parse(value: unknown): Parsed<T>;
  /** `parse` for a value whose type the compiler checks; unknown fields are dropped. */
  complete(input: Input): T;
  /** What forbids to replace `old` by `next`, two valid objects; empty if nothing does. Absent if everything may change. */
  checkUpdate?(old: T, next: T): readonly FieldCause[];
  /** Puts into an object that is about to be stored for the first time, with its name, what only the server may set. */
  onCreate?(object: T): T;
  /** What users of this version are warned with. Absent if they need not be. */
  readonly deprecation?: string;
  /**
   * True for an object that must stay after its deletion was requested, whatever its finalizers are. Absent if nothing but those
   * holds it. A kind that has it takes writes of its spec through the sub-resource `finalize` only.
   */
  deletionHold?(object: T): boolean;
  /** Why an object must never be deleted, as the end of a sentence; undefined if it may be. Absent if all may be. */
  forbidsDeletion?(object: T): string | undefined;
}

/** The type of a kind's objects. */
export type ObjectOf<K> = K extends Kind<infer T> ? T : never;

type Part<Key extends string, Type> = [Type] extends [never] ? unknown : { [K in Key]: Type };
type OptionalPart<Key extends string, Type> = [Type] extends [never] ? unknown : { [K in Key]?: Type | undefined };
/** zod's type for a shape without fields forbids every key, so such a shape adds nothing. */
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
  readonly serverNamed?: boolean;
  readonly sensitive?: boolean;
  /** Brings an object whose schema holds into the one form that is stored. */
  readonly normalize?: (object: DefinedObject<Spec, Status, Fields>) => DefinedObject<Spec, Status, Fields>;
  /** What is wrong with an object whose schema holds: rules about several fields at once. Runs after `normalize`. */
  readonly check?: (object: DefinedObject<Spec, Status, Fields>) => readonly FieldCause[];
  readonly immutableFields?: readonly string[];
  readonly maxValues?: number;
  readonly compilesRules?: boolean;
  readonly updatesIgnoreStatusWrites?: boolean;
  /** Rules between two states besides `immutableFields`. */
  readonly checkUpdate?: (
    old: DefinedObject<Spec, Status, Fields>,
    next: DefinedObject<Spec, Status, Fields>,
  ) => readonly FieldCause[];
  readonly onCreate?: (object: DefinedObject<Spec, Status, Fields>) => DefinedObject<Spec, Status, Fields>;
  readonly deletionHold?: (object: DefinedObject<Spec, Status, Fields>) => boolean;
  readonly forbidsDeletion?: (object: DefinedObject<Spec, Status, Fields>) => string | undefined;
  readonly printerColumns?: readonly PrinterColumn<DefinedObject<Spec, Status, Fields>>[];
  readonly selectableFields?: readonly SelectableField[];
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
  const serverNamed = definition.serverNamed ?? false;
  const nameRule = serverNamed ? undefined : (definition.nameRule ?? DNS_SUBDOMAIN);
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

  function parse(value: unknown): Parsed<T> {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw invalidObject(subject, [invalidValue([], value, 'expected object')]);
    const candidate: Record<string, unknown> = { apiVersion, kind, metadata: {}, ...value };
    const { result, judged } = parseWithoutNulls(schema, candidate);
    if (!result.success) {
      const causes = causesOf(result.error.issues, judged, sensitive);
      throw invalidObject(`${subject}${nameForMessage(candidate)}`, causes);
    }
    const known = result.data as unknown as T;
    const object = definition.normalize?.(known) ?? known;
    const causes = definition.check?.(object) ?? [];
    if (causes.length > 0) throw invalidObject(`${subject}${nameForMessage(candidate)}`, causes);
    return { object, unknownFields: unknownFields(candidate, known) };
  }

  const { immutableFields = [], checkUpdate } = definition;
  const judgesUpdates = immutableFields.length > 0 || checkUpdate !== undefined;

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
    serverNamed,
    sensitive,
    hasStatus: definition.status !== undefined,
    printerColumns: definition.printerColumns ?? [],
    selectableFields: definition.selectableFields ?? [],
    fields,
    nameRule,
    immutableFields,
    parse,
    complete: (input) => parse(input).object,
    ...(definition.maxValues === undefined ? {} : { maxValues: definition.maxValues }),
    ...(definition.compilesRules === undefined ? {} : { compilesRules: definition.compilesRules }),
    ...(definition.updatesIgnoreStatusWrites === true ? { updatesIgnoreStatusWrites: true } : {}),
    ...(definition.onCreate === undefined ? {} : { onCreate: definition.onCreate }),
    ...(definition.deletionHold === undefined ? {} : { deletionHold: definition.deletionHold }),
    ...(definition.forbidsDeletion === undefined ? {} : { forbidsDeletion: definition.forbidsDeletion }),
    ...(judgesUpdates && {
      checkUpdate: (old: T, next: T) => [
        ...immutableCauses(immutableFields, old, next, sensitive),
        ...(checkUpdate?.(old, next) ?? []),
      ],
    }),
  };
}

function nameForMessage(candidate: Record<string, unknown>): string {
  const metadata = candidate.metadata;
  if (typeof metadata !== 'object' || metadata === null || !('name' in metadata)) return '';
  return typeof metadata.name === 'string' ? ` ${JSON.stringify(metadata.name)}` : '';
}
