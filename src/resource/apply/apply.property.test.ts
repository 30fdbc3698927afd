import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { KubernetesObject } from '../object/object.ts';
import type { StructuralSchema } from '../schema/structural/structural-schema.ts';
import type { ApplyConflictDetails } from './apply-conflict.ts';
import { showPaths } from './field-set.ts';
import { fromFieldsV1 } from './fields-v1.ts';
import { serverSideApply } from './server-side-apply.ts';
import { trackUpdate } from './track-update.ts';

type Json = Readonly<Record<string, unknown>>;

const scalar: StructuralSchema = { type: 'integer' };
const leaf = fc.constantFrom<StructuralSchema>(
  scalar,
  { type: 'array', items: scalar },
  { type: 'object', 'x-kubernetes-map-type': 'atomic', additionalProperties: scalar },
);
const { node } = fc.letrec<{ node: StructuralSchema; object: StructuralSchema }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 3, depthIdentifier: 'schema' },
    leaf,
    fc.constant<StructuralSchema>({ type: 'array', 'x-kubernetes-list-type': 'set', items: scalar }),
    tie('object'),
    fc.oneof(leaf, tie('object')).map((values): StructuralSchema => ({ type: 'object', additionalProperties: values })),
    tie('object').map(
      (item): StructuralSchema => ({
        type: 'array',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['id'],
        items: { ...item, properties: { ...item.properties, id: scalar } },
      }),
    ),
  ),
  object: fc
    .dictionary(fc.constantFrom('p', 'q', 'r'), tie('node'), { minKeys: 1, maxKeys: 3, depthIdentifier: 'schema' })
    .map((properties): StructuralSchema => ({ type: 'object', properties })),
}));

/** Values of a schema; small numbers, so that writers often write the same. */
function valueFor(schema: StructuralSchema): fc.Arbitrary<unknown> {
  const { type, items, properties, additionalProperties } = schema;
  const number = fc.integer({ min: 0, max: 2 });
  if (type === 'integer') return number;
  if (type === 'array' && schema['x-kubernetes-list-type'] === 'map' && items !== undefined)
    return fc.uniqueArray(valueFor(items), { maxLength: 3, selector: (item) => (item as { id: number }).id });
  if (type === 'array') return schema['x-kubernetes-list-type'] === 'set' ? fc.uniqueArray(number) : fc.array(number);
  if (typeof additionalProperties === 'object')
    return fc.dictionary(fc.constantFrom('x', 'y'), valueFor(additionalProperties), { noNullPrototype: true });
  const fields = Object.fromEntries(Object.entries(properties ?? {}).map(([key, inner]) => [key, valueFor(inner)]));
  return fc.record(fields, { requiredKeys: 'id' in fields ? ['id'] : [], noNullPrototype: true });
}

/** What may be owned: leaves and items with their values, containers apart. Not the code under test. */
interface Flat {
  readonly fields: Map<string, string>;
  readonly containers: Set<string>;
}

function flatten(value: unknown, schema: StructuralSchema, path = '', flat: Flat = emptyFlat()): Flat {
  const { items, properties, additionalProperties } = schema;
  const listType = schema['x-kubernetes-list-type'];
  if (schema.type === 'integer' || schema['x-kubernetes-map-type'] === 'atomic' || (items && !listType)) {
    flat.fields.set(
      path,
      JSON.stringify(schema['x-kubernetes-map-type'] ? Object.entries(value as Json).sort() : value),
    );
    return flat;
  }
  flat.containers.add(path);
  if (listType === 'set') for (const item of value as number[]) flat.fields.set(`${path}[=${item}]`, '');
  else if (listType === 'map' && items) {
    for (const item of value as { id: number }[]) {
      const place = `${path}[id=${item.id}]`;
      flatten(item, items, place, flat);
      flat.fields.set(place, '');
    }
  } else {
    for (const [key, inner] of Object.entries(value as Json)) {
      const place = `${path}.${key}`;
      flatten(inner, properties?.[key] ?? (additionalProperties as StructuralSchema), place, flat);
      // A key of a map is an item, whatever is beneath it.
      if (!properties && !flat.fields.has(place)) flat.fields.set(place, '');
    }
  }
  return flat;
}

function emptyFlat(): Flat {
  return { fields: new Map(), containers: new Set() };
}

/** Server-side apply on a flat object: paths with values, and who owns which. */
class Model {
  fields = new Map<string, string>();
  owners = new Map<string, Set<string>>();

  /** The conflicts; if there are any, nothing was done. */
  apply(manager: string, given: ReadonlyMap<string, string>, force: boolean): string[] {
    const self = `${manager} Apply`;
    const conflicts = [...given].flatMap(([path, value]) =>
      this.#othersOwning(path, self)
        .filter(() => this.fields.get(path) !== value)
        .map((owner) => `${owner} ${path}`),
    );
    if (conflicts.length > 0 && !force) return conflicts.sort();
    for (const [path, value] of given) {
      if (this.fields.get(path) !== value)
        for (const other of this.#othersOwning(path, self)) this.owners.get(other)?.delete(path);
      this.fields.set(path, value);
    }
    for (const path of this.owners.get(self) ?? [])
      if (!given.has(path) && this.#othersOwning(path, self).length === 0) this.#removeWithAllBeneath(path);
    this.owners.set(self, new Set(given.keys()));
    this.#forgetOwnersOfNothing();
    return [];
  }

  update(manager: string, after: ReadonlyMap<string, string>): void {
    const changed = [...after].filter(([path, value]) => this.fields.get(path) !== value).map(([path]) => path);
    for (const owned of this.owners.values())
      for (const path of [...owned]) if (!after.has(path) || changed.includes(path)) owned.delete(path);
    this.fields = new Map(after);
    const self = `${manager} Update`;
    this.owners.set(self, new Set([...(this.owners.get(self) ?? []), ...changed]));
    this.#forgetOwnersOfNothing();
  }

  #othersOwning(path: string, self: string): string[] {
    return [...this.owners].filter(([owner, owned]) => owner !== self && owned.has(path)).map(([owner]) => owner);
  }

  #removeWithAllBeneath(path: string): void {
    for (const other of [...this.fields.keys()]) {
      if (other !== path && !other.startsWith(`${path}.`) && !other.startsWith(`${path}[`)) continue;
      this.fields.delete(other);
      for (const owned of this.owners.values()) owned.delete(other);
    }
  }

  #forgetOwnersOfNothing(): void {
    for (const [owner, owned] of this.owners) if (owned.size === 0) this.owners.delete(owner);
  }
}

/** `spec.always` always has an owner, so the object is tracked at all times. */
const scenario = node.chain((root) => {
  const spec: StructuralSchema = { type: 'object', properties: { always: scalar, root } };
  const schema: StructuralSchema = { type: 'object', properties: { spec } };
  const step = fc.record({
    operation: fc.constantFrom('apply', 'apply', 'update'),
    manager: fc.constantFrom('a', 'b', 'c'),
    force: fc.boolean(),
    value: fc.record({ always: fc.constantFrom(1, 2), root: valueFor(root) }, { requiredKeys: ['always'] }),
  });
  return fc.record({ schema: fc.constant(schema), steps: fc.array(step, { minLength: 1, maxLength: 8 }) });
});

function body(value: unknown): KubernetesObject {
  return { apiVersion: 'v1', kind: 'Thing', metadata: { name: 'one' }, spec: value };
}

function ownersOf(object: KubernetesObject | undefined): Map<string, string[]> {
  return new Map(
    (object?.metadata.managedFields ?? []).map((entry) => [
      `${entry.manager} ${entry.operation}`,
      showPaths(fromFieldsV1(entry.fieldsV1)),
    ]),
  );
}

test('objects and owners are as in the model, over random schemas and histories', () => {
  fc.assert(
    fc.property(scenario, ({ schema, steps }) => {
      const model = new Model();
      let object: KubernetesObject | undefined;
      let appliesOnly = true;
      for (const { operation, manager, force, value } of steps) {
        const common = { schema, manager, apiVersion: 'v1', now: '2026-01-01T00:00:00Z', hasStatus: true };
        const given = flatten({ spec: value }, schema).fields;
        if (operation === 'update') {
          appliesOnly = false;
          const after = body(value);
          const managedFields = trackUpdate({ ...common, before: object, after });
          object = { ...after, metadata: { ...after.metadata, managedFields } };
          model.update(manager, given);
        } else {
          const request = { ...common, applied: body(value), force };
          const conflicts = model.apply(manager, given, force);
          try {
            object = serverSideApply({ ...request, live: object }).object;
            expect(conflicts).toEqual([]);
            // A second time nothing is left to do.
            expect(serverSideApply({ ...request, live: object }).object).toBe(object);
          } catch (error) {
            if (!isSluiceError(error, 'Conflict')) throw error;
            const { causes } = error.details as ApplyConflictDetails;
            expect(causes.map((cause) => cause.field).sort()).toEqual(
              conflicts.map((text) => text.split(' ').at(-1)).sort(),
            );
          }
        }
        if (object === undefined) continue;
        const now = flatten({ spec: object.spec }, schema);
        expect(now.fields).toEqual(model.fields);
        const owned = new Set<string>();
        const owners = ownersOf(object);
        expect([...model.owners.keys()].filter((owner) => !owners.has(owner))).toEqual([]);
        for (const [owner, paths] of owners) {
          const fields = paths.filter((path) => model.fields.has(path));
          expect(new Set(fields)).toEqual(model.owners.get(owner) ?? new Set());
          // What is not there has no owner.
          expect(paths.filter((path) => !now.fields.has(path) && !now.containers.has(path))).toEqual([]);
          for (const path of fields) owned.add(path);
        }
        if (appliesOnly) expect(owned).toEqual(new Set(model.fields.keys()));
      }
    }),
    { numRuns: runs(400) },
  );
});
