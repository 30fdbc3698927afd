import { z } from 'zod';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { RbacAuthorizer } from '../authorization/rbac-authorizer.ts';
import { reviewWithStatus, specOf, text } from './review-body.ts';
import type { VirtualResource } from './virtual-resource.ts';

const NAME = { group: 'authorization.k8s.io', kind: 'SelfSubjectRulesReview' };

/** All that the caller may do in a namespace, for `kubectl auth can-i --list`. */
export function rulesReview(authorizer: RbacAuthorizer): VirtualResource {
  return {
    group: NAME.group,
    version: 'v1',
    resource: 'selfsubjectrulesreviews',
    namespaced: false,
    answer(user, body) {
      const spec = specOf(NAME, z.object({ namespace: text }), body);
      if (spec.namespace === '')
        throw new SluiceError('BadRequest', 'spec.namespace: name the namespace to list rules for');
      const rules = authorizer.rulesFor(user, spec.namespace);
      return reviewWithStatus(NAME, spec, {
        resourceRules: rules
          .filter(({ resources }) => resources !== undefined && resources.length > 0)
          .map(({ verbs, apiGroups = [], resources, resourceNames }) => ({
            verbs,
            apiGroups,
            resources,
            ...(resourceNames === undefined ? {} : { resourceNames }),
          })),
        nonResourceRules: rules
          .filter(({ nonResourceURLs }) => nonResourceURLs !== undefined && nonResourceURLs.length > 0)
          .map(({ verbs, nonResourceURLs }) => ({ verbs, nonResourceURLs })),
        incomplete: false,
      });
    },
  };
}
