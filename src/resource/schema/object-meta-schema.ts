import type { StructuralSchema } from './structural/structural-schema.ts';

const text = (description: string): StructuralSchema => ({ type: 'string', description });
const time = (description: string): StructuralSchema => ({ type: 'string', format: 'date-time', description });
const texts = (description: string): StructuralSchema => ({
  type: 'object',
  description,
  additionalProperties: { type: 'string' },
});

/** The metadata of every object. */
export const OBJECT_META_SCHEMA: StructuralSchema = {
  type: 'object',
  description: 'Standard metadata of every object.',
  properties: {
    name: text('Name of the object, unique in its namespace and kind. It cannot be changed.'),
    generateName: text('Prefix of the name that the server generates if name is empty.'),
    namespace: text('Namespace of the object; empty for kinds that have none. It cannot be changed.'),
    uid: text(
      'Unique identifier of the object; a recreated object with the same name has another one. Set by the server.',
    ),
    resourceVersion: text('Changes with every write. Opaque: compare it only for equality. Set by the server.'),
    generation: {
      type: 'integer',
      format: 'int64',
      description:
        'Sequence number of the desired state. Increases with every change except those of the status. Set by the server.',
    },
    creationTimestamp: time('Creation time of the object. Set by the server.'),
    deletionTimestamp: time(
      'Time at which the deletion of the object was requested. It is completed when the list of finalizers is empty. Set by the server.',
    ),
    deletionGracePeriodSeconds: {
      type: 'integer',
      format: 'int64',
      description: 'Grace period of the deletion in seconds. Set by the server.',
    },
    selfLink: text('Deprecated and not used.'),
    labels: texts('Key-value pairs that selectors match.'),
    annotations: texts('Key-value pairs with arbitrary data of tools. Selectors do not match them.'),
    finalizers: {
      type: 'array',
      description:
        'Names of the controllers that have work before the deletion of the object; each removes its own name.',
      items: { type: 'string' },
      'x-kubernetes-list-type': 'set',
    },
    ownerReferences: {
      type: 'array',
      description: 'Owners of the object. It is deleted when all of them are deleted.',
      items: {
        type: 'object',
        properties: {
          apiVersion: text('API version of the owner.'),
          kind: text('Kind of the owner.'),
          name: text('Name of the owner.'),
          uid: text('uid of the owner.'),
          controller: {
            type: 'boolean',
            description: 'Whether the owner is the controller of the object; at most one is.',
          },
          blockOwnerDeletion: {
            type: 'boolean',
            description: 'Whether a foreground deletion of the owner waits for this object.',
          },
        },
        required: ['apiVersion', 'kind', 'name', 'uid'],
        'x-kubernetes-map-type': 'atomic',
      },
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['uid'],
    },
    managedFields: {
      type: 'array',
      description: 'Who owns which field; server-side apply keeps it.',
      items: {
        type: 'object',
        properties: {
          manager: text('Name of the field manager.'),
          operation: text('Apply or Update.'),
          apiVersion: text('The version that the names of the fields are from.'),
          time: time('When the writer last changed which fields it owns.'),
          fieldsType: text('FieldsV1.'),
          fieldsV1: {
            type: 'object',
            description: 'The fields, as a tree of names.',
            'x-kubernetes-preserve-unknown-fields': true,
          },
          subresource: text('The subresource that was written.'),
        },
      },
      'x-kubernetes-list-type': 'atomic',
    },
  },
};
