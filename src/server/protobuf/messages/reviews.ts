import { flag, list, map, message, optional, part, required, text } from './message.ts';
import { objectMeta, selectorRequirement } from './meta.ts';

/** Messages of k8s.io/api, packages authorization/v1 and authentication/v1. */

const selectorAttributes = message({ rawSelector: text(1), requirements: list(2, selectorRequirement) });

const resourceAttributes = message({
  namespace: text(1),
  verb: text(2),
  group: text(3),
  version: text(4),
  resource: text(5),
  subresource: text(6),
  name: text(7),
  fieldSelector: optional(part(8, selectorAttributes)),
  labelSelector: optional(part(9, selectorAttributes)),
});

const attributes = {
  resourceAttributes: optional(part(1, resourceAttributes)),
  nonResourceAttributes: optional(part(2, message({ path: text(1), verb: text(2) }))),
};

const accessStatus = message({
  allowed: required(flag(1)),
  denied: flag(4),
  reason: text(2),
  evaluationError: text(3),
});

export const selfSubjectAccessReview = message({
  metadata: part(1, objectMeta),
  spec: part(2, message(attributes)),
  status: part(3, accessStatus),
});

const subjectAccessSpec = message({
  ...attributes,
  user: text(3),
  groups: list(4, 'text'),
  extra: map(5, 'texts'),
  uid: text(6),
});

/** A SubjectAccessReview or a LocalSubjectAccessReview. */
export const subjectAccessReview = message({
  metadata: part(1, objectMeta),
  spec: part(2, subjectAccessSpec),
  status: part(3, accessStatus),
});

const verbs = required(list(1, 'text'));

const rulesStatus = message({
  resourceRules: required(
    list(1, message({ verbs, apiGroups: list(2, 'text'), resources: list(3, 'text'), resourceNames: list(4, 'text') })),
  ),
  nonResourceRules: required(list(2, message({ verbs, nonResourceURLs: list(2, 'text') }))),
  incomplete: required(flag(3)),
  evaluationError: text(4),
});

export const selfSubjectRulesReview = message({
  metadata: part(1, objectMeta),
  spec: part(2, message({ namespace: text(1) })),
  status: part(3, rulesStatus),
});

const userInfo = message({ username: text(1), uid: text(2), groups: list(3, 'text'), extra: map(4, 'texts') });

export const tokenReview = message({
  metadata: part(1, objectMeta),
  spec: part(2, message({ token: text(1), audiences: list(2, 'text') })),
  status: part(
    3,
    message({ authenticated: flag(1), user: part(2, userInfo), audiences: list(4, 'text'), error: text(3) }),
  ),
});

export const selfSubjectReview = message({
  metadata: part(1, objectMeta),
  status: part(2, message({ userInfo: part(1, userInfo) })),
});
