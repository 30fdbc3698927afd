import type { KubernetesObject } from '../object/object.ts';
import type { StructuralSchema } from '../schema/structural/structural-schema.ts';
import { serverSideApply } from './server-side-apply.ts';
import { trackUpdate } from './track-update.ts';

const text: StructuralSchema = { type: 'string' };
const texts: StructuralSchema = { type: 'object', additionalProperties: text };

/** A kind with every way to share a value. */
export const gadgetSchema: StructuralSchema = {
  type: 'object',
  properties: {
    apiVersion: text,
    kind: text,
    metadata: {
      type: 'object',
      properties: {
        name: text,
        namespace: text,
        uid: text,
        resourceVersion: text,
        creationTimestamp: text,
        generation: { type: 'integer' },
        labels: texts,
        annotations: texts,
        finalizers: { type: 'array', 'x-kubernetes-list-type': 'set', items: text },
        managedFields: { type: 'array', items: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    },
    spec: {
      type: 'object',
      properties: {
        color: { type: 'string', nullable: true },
        size: { type: 'integer' },
        mode: text,
        selector: { type: 'object', 'x-kubernetes-map-type': 'atomic', additionalProperties: text },
        steps: { type: 'array', items: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        tags: { type: 'array', 'x-kubernetes-list-type': 'set', items: text },
        ports: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['port', 'protocol'],
          items: {
            type: 'object',
            properties: {
              port: { type: 'integer' },
              protocol: { type: 'string', default: 'TCP' },
              name: text,
              note: text,
            },
          },
        },
        free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        nested: { type: 'object', additionalProperties: { type: 'object', properties: { a: text, b: text } } },
      },
    },
    status: { type: 'object', properties: { phase: text, count: { type: 'integer' } } },
  },
};

/** The body of a gadget named `one`. */
export function gadget(fields: Readonly<Record<string, unknown>>): KubernetesObject {
  const { metadata, ...rest } = fields;
  return { apiVersion: 'v1', kind: 'Gadget', metadata: { name: 'one', ...(metadata as object | undefined) }, ...rest };
}

/** One object and its writers, each write a second after the one before. */
export class Scene {
  object: KubernetesObject | undefined;
  #seconds = 0;
  readonly #part: { hasStatus: boolean; subResource?: string };

  constructor(part: { hasStatus: boolean; subResource?: string } = { hasStatus: true }) {
    this.#part = part;
  }

  apply(
    manager: string,
    fields: Readonly<Record<string, unknown>>,
    options: { force?: boolean } = {},
  ): KubernetesObject {
    const { object } = serverSideApply({
      ...this.#common(manager),
      live: this.object,
      applied: gadget(fields),
      force: options.force ?? false,
    });
    this.object = object;
    return object;
  }

  /** Replaces the object as an update does; managedFields in `fields` are what the client sends. */
  update(manager: string, fields: Readonly<Record<string, unknown>>, subResource?: string): KubernetesObject {
    const after = gadget(fields);
    const common = this.#common(manager);
    const managedFields = trackUpdate({
      ...common,
      before: this.object,
      after,
      subResource: subResource ?? common.subResource,
    });
    this.object = { ...after, metadata: { ...after.metadata, managedFields } };
    return this.object;
  }

  /** The content of the object, without its name and its field owners. */
  get fields(): Record<string, unknown> {
    const { apiVersion: _, kind: __, metadata, ...rest } = this.object ?? gadget({});
    const { name: ___, managedFields: ____, ...more } = metadata;
    return Object.keys(more).length === 0 ? rest : { metadata: more, ...rest };
  }

  /** `kubectl Apply` → its fields, and so on. */
  get owners(): Record<string, unknown> {
    return Object.fromEntries(
      (this.object?.metadata.managedFields ?? []).map((entry) => [
        `${entry.manager} ${entry.operation}`,
        entry.fieldsV1,
      ]),
    );
  }

  get times(): Record<string, string | undefined> {
    return Object.fromEntries(
      (this.object?.metadata.managedFields ?? []).map((entry) => [entry.manager, entry.time?.slice(17, 19)]),
    );
  }

  #common(manager: string) {
    this.#seconds += 1;
    const now = `2026-01-01T00:00:${String(this.#seconds).padStart(2, '0')}Z`;
    return { ...this.#part, schema: gadgetSchema, manager, apiVersion: 'v1', now };
  }
}
