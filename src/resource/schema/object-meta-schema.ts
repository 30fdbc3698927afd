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
  description: 'Name, labels and what else every object has.',
  properties: {
    name: text('Name of the object, unique in its namespace and kind. It cannot be changed.'),
    generateName: text('Prefix of the name that the server generates if name is empty.'),
    namespace: text('Namespace of the object; empty for kinds that have none. It cannot be changed.'),
    uid: text('Identity of the object in time: a new object of the same name has another one. Set by the server.'),
    resourceVersion: text('Changes with every write. Opaque: compare it only for equality. Set by the server.'),
    generation: {
      type: 'integer',
      format: 'int64',
      description: 'Grows with every change of the desired state, not with the status. Set by the server.',
    },
    creationTimestamp: time('When the object was created. Set by the server.'),
    deletionTimestamp: time(
      'When the deletion of the object was requested, which waits for its finalizers. Set by the server.',
    ),
    deletionGracePeriodSeconds: {
      type: 'integer',
      format: 'int64',
      description: 'Grace period of the deletion in seconds. Set by the server.',
    },
    selfLink: text('Not used any more.'),
    labels: texts('Short texts by name that selectors choose objects by.'),
    annotations: texts('Texts by name for tools, of any form; selectors do not see them.'),
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
