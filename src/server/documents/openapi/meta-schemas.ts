import type { StructuralSchema } from '../../../resource/schema/structural/structural-schema.ts';

const text = (description: string): StructuralSchema => ({ type: 'string', description });
const whole = (description: string): StructuralSchema => ({ type: 'integer', format: 'int64', description });

const apiVersion = text('Group and version of the kind, as in group/v1.');
const kind = text('Name of the kind.');

const listMeta: StructuralSchema = {
  type: 'object',
  description: 'What a list has besides its items.',
  properties: {
    continue: text('Given if there are more items: the value of the parameter continue of the next request.'),
    remainingItemCount: whole('How many more items there are.'),
    resourceVersion: text('Version of the list; a watch from here receives every later change.'),
    selfLink: text('Not used any more.'),
  },
};

const preconditions: StructuralSchema = {
  type: 'object',
  description: 'Preconditions of the deletion.',
  properties: {
    uid: text('uid that the object must have.'),
    resourceVersion: text('resourceVersion that the object must have.'),
  },
};

const deleteOptions: StructuralSchema = {
  type: 'object',
  description: 'How an object is deleted.',
  properties: {
    apiVersion,
    kind,
    dryRun: {
      type: 'array',
      description: 'With All the request is checked and answered as usual, but nothing is deleted.',
      items: { type: 'string' },
      'x-kubernetes-list-type': 'atomic',
    },
    gracePeriodSeconds: whole('Grace period in seconds; no kind uses one.'),
    orphanDependents: { type: 'boolean', description: 'Older form of propagationPolicy Orphan.' },
    preconditions,
    propagationPolicy: text('What becomes of the objects that this one owns: Background, Foreground or Orphan.'),
  },
};

const status: StructuralSchema = {
  type: 'object',
  description: 'The answer to a request that returns no object.',
  properties: {
    apiVersion,
    kind,
    metadata: listMeta,
    status: text('Success or Failure.'),
    message: text('What happened, for people.'),
    reason: text('What happened, in a word that programs know.'),
    code: { type: 'integer', format: 'int32', description: 'The HTTP status.' },
    details: {
      type: 'object',
      description: 'What the request was about, and what was wrong with it.',
      properties: {
        name: text('Name of the object.'),
        group: text('Group of the kind.'),
        kind: text('The kind, or the resource.'),
        uid: text('uid of the object.'),
        retryAfterSeconds: { type: 'integer', format: 'int32', description: 'Seconds after which to try again.' },
        causes: {
          type: 'array',
          description: 'Everything that is wrong.',
          items: {
            type: 'object',
            properties: {
              reason: text('What is wrong, in a word that programs know.'),
              message: text('What is wrong, for people.'),
              field: text('The field that is wrong, as in spec.parts[0].name.'),
            },
          },
          'x-kubernetes-list-type': 'atomic',
        },
      },
    },
  },
};

/** The schemas of `meta/v1` that paths and lists name, without ObjectMeta, which `resource/schema` has. */
export const META_SCHEMAS: Readonly<Record<string, StructuralSchema>> = {
  DeleteOptions: deleteOptions,
  ListMeta: listMeta,
  Patch: { type: 'object', description: 'A patch in one of the forms that the content type names.' },
  Status: status,
};
