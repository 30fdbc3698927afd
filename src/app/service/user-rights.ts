import type { MayApprove, MayCreate } from '../../../controllers/pull-request/rights.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { DEFAULT_NAMESPACE } from '../../resource/object/object.ts';
import type { Actor } from '../../resource/object/request-context.ts';
import { AUTHENTICATED_GROUP, type User } from '../../server/authentication/user.ts';
import type { Authorizer } from '../../server/authorization/authorizer.ts';
import { isAllowed, permission } from '../../server/authorization/require-allowed.ts';

/**
 * Returns whether users may update a sub-resource of revisions, for those who act through another system: as for their requests to the API. They act with the
 * rights of their name and of the groups that the caller knows, and in the group of all authenticated users. Throws Busy while there is no authorizer yet, since
 * the API is served last: that is no failure, and is not reported as one.
 */
export function userRights(authorizer: () => Authorizer | undefined, subResource: 'approval' | 'status'): MayApprove {
  return async (user, revision, signal) => {
    const { group, plural } = packageRevisionKind;
    const about = { group, resource: plural, subResource, name: revision.name };
    const where = { namespace: revision.namespace ?? DEFAULT_NAMESPACE };
    return isAllowed(known(authorizer), permission(authenticated(user), 'update', { ...about, ...where }), signal);
  };
}

/** The same for the creation of revisions. */
export function userMayCreate(authorizer: () => Authorizer | undefined): MayCreate {
  return async (user, namespace, signal) => {
    const { group, plural } = packageRevisionKind;
    const about = { group, resource: plural, namespace };
    return isAllowed(known(authorizer), permission(authenticated(user), 'create', about), signal);
  };
}

function known(authorizer: () => Authorizer | undefined): Authorizer {
  const found = authorizer();
  if (found !== undefined) return found;
  throw new SluiceError('Busy', 'the API is not served yet, so that the rights of users are not known');
}

function authenticated({ name, groups = [] }: Actor): User {
  return { name, groups: [...groups, AUTHENTICATED_GROUP] };
}
