import { z } from 'zod';
import { type FieldCause, invalidObject, invalidValue } from '../../resource/object/invalid-object.ts';
import type { User } from '../authentication/user.ts';
import type { Authorizer } from '../authorization/authorizer.ts';
import { authorizeRequest } from '../authorization/require-allowed.ts';
import { extra, type ReviewName, reviewWithStatus, specOf, text, texts } from './review-body.ts';
import type { VirtualResource } from './virtual-resource.ts';

const GROUP = 'authorization.k8s.io';
const SELF = { group: GROUP, kind: 'SelfSubjectAccessReview' };
const SUBJECT = { group: GROUP, kind: 'SubjectAccessReview' };
const LOCAL = { group: GROUP, kind: 'LocalSubjectAccessReview' };

const accessSpec = z.object({
  resourceAttributes: z
    .object({
      namespace: text,
      verb: text,
      group: text,
      version: text,
      resource: text,
      subresource: text,
      name: text,
    })
    .nullish(),
  nonResourceAttributes: z.object({ path: text, verb: text }).nullish(),
});

const subjectSpec = accessSpec.extend({ user: text, groups: texts, uid: text, extra });

type AccessSpec = z.infer<typeof accessSpec>;

/** Reviews of what a user may do: the caller (`kubectl auth can-i`), any user, and any user in one namespace. */
export function accessReviews(authorizer: Authorizer): readonly VirtualResource[] {
  const common = { group: GROUP, version: 'v1' };
  return [
    {
      ...common,
      resource: 'selfsubjectaccessreviews',
      namespaced: false,
      async answer(user, body) {
        const spec = specOf(SELF, accessSpec, body);
        refuse(SELF, attributeCauses(spec));
        return reviewWithStatus(SELF, spec, await accessStatus(authorizer, user, spec));
      },
    },
    {
      ...common,
      resource: 'subjectaccessreviews',
      namespaced: false,
      async answer(_caller, body) {
        const spec = specOf(SUBJECT, subjectSpec, body);
        refuse(SUBJECT, [...attributeCauses(spec), ...subjectCauses(spec)]);
        return reviewWithStatus(SUBJECT, spec, await accessStatus(authorizer, subjectOf(spec), spec));
      },
    },
    {
      ...common,
      resource: 'localsubjectaccessreviews',
      namespaced: true,
      async answer(_caller, body, namespace) {
        const spec = specOf(LOCAL, subjectSpec, body);
        refuse(LOCAL, [...attributeCauses(spec), ...subjectCauses(spec), ...localCauses(spec, namespace)]);
        return reviewWithStatus(LOCAL, spec, await accessStatus(authorizer, subjectOf(spec), spec));
      },
    },
  ];
}

const NO_ATTRIBUTES = { namespace: '', group: '', version: '', resource: '', subresource: '', name: '' };

async function accessStatus(authorizer: Authorizer, user: User, spec: AccessSpec): Promise<object> {
  const isResource = Boolean(spec.resourceAttributes);
  const { path, verb } = spec.nonResourceAttributes ?? { path: '', verb: '' };
  const { subresource: subResource, ...attributes } = spec.resourceAttributes ?? { ...NO_ATTRIBUTES, verb };
  const { allowed, reason } = await authorizeRequest(authorizer, {
    user,
    isResource,
    path,
    subResource,
    ...attributes,
  });
  return { allowed, ...(reason === '' ? {} : { reason }) };
}

/** The user with the named groups only: a review authenticates no user, so `system:authenticated` is not implied. */
function subjectOf({ user, groups, uid, extra: values }: z.infer<typeof subjectSpec>): User {
  return { name: user, groups, ...(uid === '' ? {} : { uid }), extra: values };
}

function refuse({ group, kind }: ReviewName, causes: readonly FieldCause[]): void {
  if (causes.length > 0) throw invalidObject(`${kind}.${group}`, causes);
}

function attributeCauses({ resourceAttributes: onResource, nonResourceAttributes: onPath }: AccessSpec): FieldCause[] {
  if (onResource && onPath)
    return [
      invalidValue(
        ['spec', 'nonResourceAttributes'],
        onPath,
        'cannot be specified in combination with resourceAttributes',
      ),
    ];
  if (onResource || onPath) return [];
  const rule = 'exactly one of nonResourceAttributes or resourceAttributes must be specified';
  return [invalidValue(['spec', 'resourceAttributes'], null, rule)];
}

function subjectCauses({ user, groups }: z.infer<typeof subjectSpec>): FieldCause[] {
  if (user !== '' || groups.length > 0) return [];
  return [invalidValue(['spec', 'user'], user, 'at least one of user or group must be specified')];
}

function localCauses({ resourceAttributes, nonResourceAttributes }: AccessSpec, namespace: string): FieldCause[] {
  if (nonResourceAttributes)
    return [
      invalidValue(['spec', 'nonResourceAttributes'], nonResourceAttributes, 'disallowed on this kind of request'),
    ];
  if (!resourceAttributes || resourceAttributes.namespace === namespace) return [];
  const path = ['spec', 'resourceAttributes', 'namespace'];
  return [invalidValue(path, resourceAttributes.namespace, 'must match metadata.namespace')];
}
