import type { MayApprove, MayCreate } from '../../../controllers/pull-request/rights.ts';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { DEFAULT_NAMESPACE } from '../../resource/object/object.ts';
import { AUTHENTICATED_GROUP } from '../../server/authentication/user.ts';
import type { Authorizer } from '../../server/authorization/authorizer.ts';
import { isAllowed, permission } from '../../server/authorization/require-allowed.ts';

/**
 * Returns whether users may update a sub-resource of revisions, for those who act through another system: as for their requests to the API. They act with the
 * rights of their name alone, and in the group of all authenticated users. `authorizer` throws Unavailable while there is none yet.
 */
export function userRights(authorizer: () => Authorizer, subResource: 'approval' | 'status'): MayApprove {
  return (name, revision, signal) => {
    const { group, plural } = packageRevisionKind;
    const about = { group, resource: plural, subResource, name: revision.name };
    const where = { namespace: revision.namespace ?? DEFAULT_NAMESPACE };
    const user = { name, groups: [AUTHENTICATED_GROUP] };
    return isAllowed(authorizer(), permission(user, 'update', { ...about, ...where }), signal);
  };
}

/** The same for the creation of revisions. */
export function userMayCreate(authorizer: () => Authorizer): MayCreate {
  return (name, namespace, signal) => {
    const { group, plural } = packageRevisionKind;
    const user = { name, groups: [AUTHENTICATED_GROUP] };
    return isAllowed(authorizer(), permission(user, 'create', { group, resource: plural, namespace }), signal);
  };
}
