import { isJsonObject } from '../../resource/object/own-property.ts';
import { structuralProblems } from '../../resource/schema/structural/structural-problems.ts';
import type { StructuralSchema } from '../../resource/schema/structural/structural-schema.ts';
import type { Resource } from '../resource/resource.ts';

/** A schema for validating resources. */
export interface UsableSchema {
  readonly schema: StructuralSchema;
  /** False if it has CEL rules that cannot be understood here. */
  readonly canEvaluateRules: boolean;
}

/** The schema of a kind that a package defines, in one version; or why it cannot be used. */
export type PackageSchema = UsableSchema | { readonly problem: string; readonly definition: Resource };

/** The schemas in the CustomResourceDefinitions of a package; each is checked on first use. */
export class PackageSchemas {
  readonly #found = new Map<string, { readonly definition: Resource; readonly schema: unknown }>();
  readonly #checked = new Map<string, PackageSchema>();
  readonly #metadata: StructuralSchema;

  /** Definitions have no schema of `metadata`. Of two definitions of one kind the first counts. */
  constructor(resources: readonly Resource[], metadata: StructuralSchema) {
    this.#metadata = metadata;
    for (const definition of resources) {
      if (definition.kind !== 'CustomResourceDefinition' || definition.group !== 'apiextensions.k8s.io') continue;
      for (const [key, schema] of schemasIn(definition.get(['spec'])))
        if (!this.#found.has(key)) this.#found.set(key, { definition, schema });
    }
  }

  /** Undefined if the package does not define the kind. */
  of(apiVersion: string, kind: string): PackageSchema | undefined {
    const key = `${apiVersion}/${kind}`;
    const found = this.#found.get(key);
    if (found === undefined) return undefined;
    const result = this.#checked.get(key) ?? this.#check(found.definition, found.schema);
    this.#checked.set(key, result);
    return result;
  }

  #check(definition: Resource, schema: unknown): PackageSchema {
    const flaws = structuralProblems(schema);
    const others = flaws.filter(({ path }) => path.at(-3) !== 'x-kubernetes-validations');
    const [first] = others;
    if (first !== undefined) return { problem: `${first.field || 'the schema'}: ${first.message}`, definition };
    const given = schema as StructuralSchema;
    const properties = {
      ...given.properties,
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: this.#metadata,
    } as const;
    return { schema: { ...given, properties }, canEvaluateRules: flaws.length === 0 };
  }
}

/** Schemas by `apiVersion/kind`. In v1beta1 one schema may be that of all versions. */
function* schemasIn(spec: unknown): Generator<readonly [string, unknown]> {
  if (!isJsonObject(spec)) return;
  const { group, version, versions, validation } = spec;
  const kind = isJsonObject(spec.names) ? spec.names.kind : undefined;
  const listed: readonly unknown[] = Array.isArray(versions) ? versions : [{ name: version }];
  for (const entry of listed) {
    if (!isJsonObject(entry)) continue;
    const schema = schemaIn(entry.schema) ?? schemaIn(validation);
    if (schema !== undefined) yield [`${group}/${entry.name}/${kind}`, schema];
  }
}

function schemaIn(value: unknown): unknown {
  return isJsonObject(value) ? value.openAPIV3Schema : undefined;
}
