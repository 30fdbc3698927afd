import type { StructuralSchema } from '../../resource/schema/structural/structural-schema.ts';

/**
 * The kinds of Kubernetes in a compact form. Types of fields are `string`, `integer`, `int32`, `number`, `boolean`, `time`, `any`, `intOrString`,
 * `quantity` and names of types; `[T]` is a list and `{T}` a map of them; a `!` after it marks a required field.
 */
export interface KubernetesTypes {
  /** Of Kubernetes: `1.36`. */
  readonly release: string;
  /** By `apiVersion/kind`: the name of its type, and what paths of the API call it. */
  readonly kinds: Readonly<Record<string, { readonly type: string } & ResourceName>>;
  /** Types of fields by names of types. */
  readonly types: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** The names of a kind in paths of the API. */
export interface ResourceName {
  /** `deployments`. */
  readonly plural: string;
  readonly namespaced: boolean;
}

/** As the text of a quantity, such as `500m`, `2Gi` or `1e3`. */
const QUANTITY = '^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?$';

const SCALARS: Readonly<Record<string, StructuralSchema>> = {
  string: { type: 'string' },
  integer: { type: 'integer' },
  int32: { type: 'integer', format: 'int32' },
  number: { type: 'number' },
  boolean: { type: 'boolean' },
  time: { type: 'string', format: 'date-time' },
  any: { 'x-kubernetes-preserve-unknown-fields': true },
  intOrString: { 'x-kubernetes-int-or-string': true },
  // The only one of them that has `anyOf`.
  quantity: { anyOf: [{ type: 'string', pattern: QUANTITY }, { type: 'number' }] },
};

/** The schemas of the kinds of one release of Kubernetes, made on first use. They may contain themselves. */
export class KubernetesSchemas {
  readonly release: string;
  readonly #data: KubernetesTypes;
  readonly #schemas = new Map<string, StructuralSchema>();

  constructor(data: KubernetesTypes) {
    this.release = data.release;
    this.#data = data;
  }

  /** Undefined if Kubernetes has no such kind. */
  of(apiVersion: string, kind: string): StructuralSchema | undefined {
    const found = this.#kind(apiVersion, kind);
    return found === undefined ? undefined : this.#schema(found.type);
  }

  /** Undefined if Kubernetes has no such kind. */
  resourceName(apiVersion: string, kind: string): ResourceName | undefined {
    return this.#kind(apiVersion, kind);
  }

  /** The metadata that every object may have. */
  get metadata(): StructuralSchema {
    return this.#schema('V1ObjectMeta');
  }

  /** API versions in which there is a kind of this name. */
  versionsOf(kind: string): string[] {
    return Object.keys(this.#data.kinds)
      .filter((key) => key.endsWith(`/${kind}`))
      .map((key) => key.slice(0, -kind.length - 1));
  }

  #kind(apiVersion: string, kind: string): KubernetesTypes['kinds'][string] | undefined {
    const { kinds } = this.#data;
    const key = `${apiVersion}/${kind}`;
    return Object.hasOwn(kinds, key) ? kinds[key] : undefined;
  }

  #schema(type: string): StructuralSchema {
    const inner = type.slice(1, -1);
    if (type.startsWith('[')) return { type: 'array', items: this.#schema(inner) };
    if (type.startsWith('{')) return { type: 'object', additionalProperties: this.#schema(inner) };
    const found = SCALARS[type] ?? this.#schemas.get(type);
    if (found !== undefined) return found;
    const properties: Record<string, StructuralSchema> = {};
    const required: string[] = [];
    const schema = { type: 'object', properties, required } as const;
    // Before its fields, as one of them may be of the same type.
    this.#schemas.set(type, schema);
    for (const [name, text] of Object.entries(this.#data.types[type] ?? {})) {
      if (text.endsWith('!')) required.push(name);
      properties[name] = this.#schema(text.replace('!', ''));
    }
    return schema;
  }
}

let loaded: Promise<KubernetesSchemas> | undefined;

/** Read from the disk once, when they are first needed. */
export function kubernetesSchemas(): Promise<KubernetesSchemas> {
  loaded ??= import('./kubernetes-types.json', { with: { type: 'json' } }).then(
    ({ default: data }) => new KubernetesSchemas(data),
  );
  return loaded;
}
