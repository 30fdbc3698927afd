import { wholeObject } from '../../../resource/schema/schema-of-kind.ts';
import type { StructuralSchema } from '../../../resource/schema/structural/structural-schema.ts';
import type { ServedReview } from './served.ts';

const text = (description: string): StructuralSchema => ({ type: 'string', description });
const flag = (description: string): StructuralSchema => ({ type: 'boolean', description });
const texts = (description: string): StructuralSchema => ({
  type: 'array',
  description,
  items: { type: 'string' },
  'x-kubernetes-list-type': 'atomic',
});
const fields = (description: string, properties: Record<string, StructuralSchema>): StructuralSchema => ({
  type: 'object',
  description,
  properties,
});
const rules = (description: string, properties: Record<string, StructuralSchema>): StructuralSchema => ({
  type: 'array',
  description,
  items: { type: 'object', properties },
  'x-kubernetes-list-type': 'atomic',
});
const extra: StructuralSchema = {
  type: 'object',
  description: 'Further attributes of the user.',
  additionalProperties: { type: 'array', items: { type: 'string' } },
};

const resourceAttributes = fields('What is done to an object. Either this or nonResourceAttributes.', {
  namespace: text('Namespace of the object; empty for all, or for kinds that have none.'),
  verb: text('get, list, watch, create, update, patch, delete, deletecollection or *.'),
  group: text('Group of the resource; * for all.'),
  version: text('Version of the resource; * for all.'),
  resource: text('Plural name of the resource; * for all.'),
  subresource: text('Name of the sub-resource.'),
  name: text('Name of the object; empty for all.'),
});
const nonResourceAttributes = fields('What is done at a path that is no resource.', {
  path: text('The path, as in /metrics.'),
  verb: text('The HTTP method in lower case.'),
});
const attributes = { resourceAttributes, nonResourceAttributes };
const userOfSpec = {
  user: text('Name of the user.'),
  groups: texts('Groups of the user.'),
  uid: text('uid of the user.'),
  extra,
};
const decision = fields('The result. Set by the server.', {
  allowed: flag('True if the request would be allowed.'),
  denied: flag('True if a rule forbids the request, whatever others allow.'),
  reason: text('Why.'),
  evaluationError: text('An error during the evaluation; the decision may be valid nevertheless.'),
});
const userInfo = fields('The user.', {
  username: text('Name of the user.'),
  uid: text('uid of the user.'),
  groups: texts('Groups of the user.'),
  extra,
});

function review(
  group: string,
  kind: string,
  description: string,
  parts: Record<string, StructuralSchema>,
  namespaced = false,
): ServedReview {
  const schema = wholeObject(description, { properties: parts });
  return { group, version: 'v1', kind, plural: `${kind.toLowerCase()}s`, namespaced, schema };
}

const AUTHORIZATION = 'authorization.k8s.io';
const AUTHENTICATION = 'authentication.k8s.io';

/** The reviews of users and their rights that the server serves. */
export const REVIEWS: readonly ServedReview[] = [
  review(AUTHORIZATION, 'SelfSubjectAccessReview', 'Reviews whether the caller may do something.', {
    spec: fields('What would be done.', attributes),
    status: decision,
  }),
  review(AUTHORIZATION, 'SelfSubjectRulesReview', 'Lists what the caller may do in a namespace.', {
    spec: fields('Where.', { namespace: text('The namespace.') }),
    status: fields('The result. Set by the server.', {
      incomplete: flag('True if there may be more than is listed.'),
      evaluationError: text('An error during the evaluation.'),
      resourceRules: rules('What may be done to objects.', {
        verbs: texts('What may be done; * for all.'),
        apiGroups: texts('Groups; * for all.'),
        resources: texts('Resources; * for all.'),
        resourceNames: texts('Names of objects; empty for all.'),
      }),
      nonResourceRules: rules('What may be done at paths that are no resources.', {
        verbs: texts('HTTP methods; * for all.'),
        nonResourceURLs: texts('Paths; * for all.'),
      }),
    }),
  }),
  review(AUTHORIZATION, 'SubjectAccessReview', 'Reviews whether a user may do something.', {
    spec: fields('Who would do what.', { ...attributes, ...userOfSpec }),
    status: decision,
  }),
  review(
    AUTHORIZATION,
    'LocalSubjectAccessReview',
    'Reviews whether a user may do something in the namespace of the review.',
    { spec: fields('Who would do what.', { ...attributes, ...userOfSpec }), status: decision },
    true,
  ),
  review(AUTHENTICATION, 'SelfSubjectReview', 'Returns the user of the caller.', {
    status: fields('The result. Set by the server.', { userInfo }),
  }),
  review(AUTHENTICATION, 'TokenReview', 'Returns the user of a token.', {
    spec: fields('The token.', {
      token: text('The token.'),
      audiences: texts('Audiences that the token must be for.'),
    }),
    status: fields('The result. Set by the server.', {
      authenticated: flag('True if the token is valid.'),
      user: userInfo,
      audiences: texts('Audiences of the token.'),
      error: text('Why the token is not valid.'),
    }),
  }),
];
