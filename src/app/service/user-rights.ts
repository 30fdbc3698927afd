import type { MayApprove, MayCreate } from '../../../controllers/pull-request/rights.ts';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { DEFAULT_NAMESPACE } from '../../resource/object/object.ts';
import type { Actor } from '../../resource/object/request-context.ts';
import { AUTHENTICATED_GROUP, type User } from '../../server/authentication/user.ts';
import type { Authorizer } from '../../server/authorization/authorizer.ts';
import { isAllowed, permission } from '../../server/authorization/require-allowed.ts';

/**
 * Returns whether users may update a sub-resource of revisions, for those who act through another system: as for their requests to the API. They act with the
 * rights of their name and of the groups that the caller knows, and in the group of all authenticated users. `authorizer` throws Unavailable while there is none yet.
 */
export function userRights(authorizer: () => Authorizer, subResource: 'approval' | 'status'): MayApprove {
  return (user, revision, signal) => {
    const { group, plural } = packageRevisionKind;
    const about = { group, resource: plural, subResource, name: revision.name };
    const where = { namespace: revision.namespace ?? DEFAULT_NAMESPACE };
    return isAllowed(authorizer(), permission(authenticated(user), 'update', { ...about, ...where }), signal);
  };
}

/** The same for the creation of revisions. */
export function userMayCreate(authorizer: () => Authorizer): MayCreate {
  return (user, namespace, signal) => {
    const { group, plural } = packageRevisionKind;
    const about = { group, resource: plural, namespace };
    return isAllowed(authorizer(), permission(authenticated(user), 'create', about), signal);
  };
}

function authenticated({ name, groups = [] }: Actor): User {
  return { name, groups: [...groups, AUTHENTICATED_GROUP] };
}
