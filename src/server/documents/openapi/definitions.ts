import type { GroupVersionKind } from '../../../resource/object/object.ts';
import { OBJECT_META_SCHEMA } from '../../../resource/schema/object-meta-schema.ts';
import type { StructuralSchema } from '../../../resource/schema/structural/structural-schema.ts';
import { STRATEGIC_MERGE_PATCH } from '../discovery/patch-types.ts';
import { namesOf, type ServedResource } from '../discovery/served.ts';
import { META_SCHEMAS } from './meta-schemas.ts';
import { mapChildren } from './schema-children.ts';
import { listKind, metaSchemaName, schemaName } from './schema-names.ts';

/** A schema of a document, which may refer to another one of it. */
export interface DocumentSchema extends Omit<StructuralSchema, 'properties' | 'items' | 'additionalProperties'> {
  /** Name of the schema that this one refers to; it may have a description as well. */
  readonly refersTo?: string;
  readonly properties?: Readonly<Record<string, DocumentSchema>>;
  readonly items?: DocumentSchema;
  readonly additionalProperties?: DocumentSchema | boolean;
  readonly 'x-kubernetes-group-version-kind'?: readonly GroupVersionKind[];
  readonly 'x-kubernetes-patch-strategy'?: string;
  readonly 'x-kubernetes-patch-merge-key'?: string;
}

/**
 * The schemas to which the operations of these resources refer: the kinds, their lists, and what all of them share. The first schema of a
 * name stays, so that no kind of a user can replace another one.
 */
export function definitionsOf(resources: readonly ServedResource[]): Map<string, DocumentSchema> {
  const definitions = new Map<string, DocumentSchema>();
  const add = (name: string, schema: DocumentSchema) => definitions.has(name) || definitions.set(name, schema);
  // Kinds of Kubernetes are patched by the rules in it, and one schema serves all kinds.
  add(metaSchemaName('ObjectMeta'), withPatchRules(OBJECT_META_SCHEMA));
  for (const [name, schema] of Object.entries(META_SCHEMAS)) add(metaSchemaName(name), schema);
  for (const resource of resources) {
    add(schemaName(resource), ofObjects(resource));
    if (resource.verbs.includes('list')) add(schemaName(listKind(resource)), ofList(resource));
  }
  for (const { kind, schema } of resources.flatMap((resource) => resource.subResources)) {
    const own = schema && { ...schema(), 'x-kubernetes-group-version-kind': [kind] };
    add(schemaName(kind), own ?? { type: 'object', description: `An object of kind ${kind.kind}.` });
  }
  return definitions;
}

function ofObjects(resource: ServedResource): DocumentSchema {
  const whole = resource.schema();
  const schema: DocumentSchema = resource.patchTypes.includes(STRATEGIC_MERGE_PATCH) ? withPatchRules(whole) : whole;
  return {
    ...schema,
    properties: {
      ...schema.properties,
      metadata: shared('ObjectMeta', 'Name, labels and what else every object has.'),
    },
    'x-kubernetes-group-version-kind': [namesOf(resource)],
  };
}

function ofList(resource: ServedResource): DocumentSchema {
  const list = listKind(resource);
  return {
    type: 'object',
    description: `A list of objects of kind ${resource.kind}.`,
    required: ['items'],
    properties: {
      apiVersion: { type: 'string', description: 'Group and version of the kind, as in group/v1.' },
      kind: { type: 'string', description: 'Name of the kind.' },
      metadata: shared('ListMeta', 'What a list has besides its items.'),
      items: { type: 'array', description: 'The objects.', items: { refersTo: schemaName(resource) } },
    },
    'x-kubernetes-group-version-kind': [list],
  };
}

function shared(name: string, description: string): DocumentSchema {
  return { refersTo: metaSchemaName(name), description };
}

/** Adds how writers share a list in the older words of strategic merge patches. */
function withPatchRules(schema: StructuralSchema): DocumentSchema {
  return { ...schema, ...patchRules(schema), ...mapChildren(schema, withPatchRules) };
}

function patchRules(
  schema: StructuralSchema,
): Pick<DocumentSchema, 'x-kubernetes-patch-strategy' | 'x-kubernetes-patch-merge-key'> {
  const type = schema['x-kubernetes-list-type'];
  const [key] = schema['x-kubernetes-list-map-keys'] ?? [];
  if (type === 'set') return { 'x-kubernetes-patch-strategy': 'merge' };
  if (type !== 'map' || key === undefined) return {};
  return { 'x-kubernetes-patch-strategy': 'merge', 'x-kubernetes-patch-merge-key': key };
}
