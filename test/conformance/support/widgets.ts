import { randomBytes } from 'node:crypto';
import { eventually } from '../../support/api/eventually.ts';
import { beforeAllServed, made, type Place, pathOf } from './place.ts';

/** The kind that a test file defines for itself. */
export interface Widgets {
  readonly group: string;
  readonly definitionPath: string;
  /** The path of widgets in the place, or of one of them. */
  path(...rest: string[]): string;
  /** A widget as a client writes it. */
  body(name: string, spec?: object, more?: object): object;
}

const DEFINITIONS = pathOf('apiextensions.k8s.io/v1/customresourcedefinitions');

const entry = {
  type: 'object',
  required: ['name'],
  properties: { name: { type: 'string' }, port: { type: 'integer' }, note: { type: 'string' } },
};

const SPEC = {
  type: 'object',
  'x-kubernetes-validations': [
    { rule: '!has(self.min) || !has(self.size) || self.min <= self.size', message: 'min must not be above size' },
  ],
  properties: {
    size: { type: 'integer', minimum: 0, maximum: 100, default: 1 },
    min: { type: 'integer' },
    color: { type: 'string', enum: ['red', 'green', 'blue'] },
    kept: { type: 'string', 'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'kept is immutable' }] },
    tags: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
    ports: {
      type: 'array',
      items: entry,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
    },
    steps: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'atomic' },
    options: { type: 'object', additionalProperties: { type: 'string' } },
    free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    empty: { type: 'string', nullable: true },
  },
};

const STATUS = { type: 'object', properties: { ready: { type: 'boolean' }, phase: { type: 'string' } } };

/** A version of the definition; `spec` in place of the usual schema of the spec. */
export function version(name: string, more: object = {}, spec: object = SPEC) {
  return {
    name,
    ...{ served: true, storage: true },
    schema: { openAPIV3Schema: { type: 'object', properties: { spec, status: STATUS } } },
    subresources: { status: {} },
    additionalPrinterColumns: [
      { name: 'Size', type: 'integer', jsonPath: '.spec.size' },
      { name: 'Ready', type: 'boolean', jsonPath: '.status.ready', priority: 1 },
    ],
    selectableFields: [{ jsonPath: '.spec.color' }],
    ...more,
  };
}

/** A definition of Widgets in a group of its own. */
export function definition(group: string, more: object = {}) {
  const names = { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList', shortNames: ['wg'] };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `widgets.${group}` },
    spec: { group, names, scope: 'Namespaced', versions: [version('v1')], ...more },
  };
}

export function randomGroup(): string {
  return `g${randomBytes(4).toString('hex')}.conformance.example.com`;
}

/** Defines the kind before the tests of the file, and takes the definition back after them. */
export function useWidgets(place: Place, more: object = {}): Widgets {
  const group = randomGroup();
  const definitionPath = `${DEFINITIONS}/widgets.${group}`;
  beforeAllServed(async () => {
    made(await place.api.post(DEFINITIONS, definition(group, more)));
    await served(place, group);
    return async () => {
      await place.api.delete(definitionPath);
    };
  });
  return {
    group,
    definitionPath,
    path: (...rest) => place.path(`${group}/v1/widgets`, ...rest),
    body: (name, spec = {}, more = {}) => ({
      apiVersion: `${group}/v1`,
      kind: 'Widget',
      metadata: { name },
      spec,
      ...more,
    }),
  };
}

/** Waits until the kind of a group can be used. */
export async function served(place: Place, group: string, name = 'v1'): Promise<void> {
  await eventually(
    () => place.api.get(pathOf(`${group}/${name}/widgets`)),
    ({ status }) => status === 200,
  );
}
