import { MASTERS_GROUP, type User } from '../authentication/user.ts';
import { allows } from './allows.ts';
import type { AuthorizationDecision, Authorizer, RequestAttributes } from './authorizer.ts';
import type { Grant, RbacIndex } from './rbac-index.ts';
import { type PolicyRule, RBAC_GROUP, type RoleRef } from './rbac-objects.ts';

/** Every verb on everything: what members of `system:masters` have without a binding. */
export const FULL_AUTHORITY: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
];

/** Missing roles that a refusal names. */
const MAX_NAMED_ROLES = 3;

/** Decides by the RBAC objects in an index, as Kubernetes does: what no rule allows is refused. */
export class RbacAuthorizer implements Authorizer {
  readonly #index: RbacIndex;

  constructor(index: RbacIndex) {
    this.#index = index;
  }

  async authorize(attributes: RequestAttributes): Promise<AuthorizationDecision> {
    return this.decide(attributes);
  }

  /**
   * Decides by the present state of the index. The reason of a refusal is empty, or names the roles that bindings of the user refer to and
   * that do not exist.
   */
  decide(attributes: RequestAttributes): AuthorizationDecision {
    const { user } = attributes;
    if (isMaster(user)) return { allowed: true, reason: `member of the group ${MASTERS_GROUP}` };
    const missing = new Set<string>();
    for (const grant of this.#index.grants(user, attributes.namespace)) {
      if (grant.rules === undefined) {
        if (missing.size < MAX_NAMED_ROLES) missing.add(`${roleText(grant.binding.roleRef)} not found`);
      } else if (allows(grant.rules, attributes)) return { allowed: true, reason: reasonOf(grant) };
    }
    return { allowed: false, reason: missing.size === 0 ? '' : `RBAC: ${[...missing].join(', ')}` };
  }

  /** All rules that a user has in a namespace; in none (`''`) those of bindings of the whole cluster. */
  rulesFor(user: User, namespace: string): PolicyRule[] {
    const rules = new Set<PolicyRule>(isMaster(user) ? FULL_AUTHORITY : []);
    for (const grant of this.#index.grants(user, namespace)) for (const rule of grant.rules ?? []) rules.add(rule);
    return [...rules];
  }

  /** The rules of a role that a binding in this namespace refers to; undefined if it does not exist. */
  rulesOf(roleRef: RoleRef, namespace: string): readonly PolicyRule[] | undefined {
    return this.#index.rulesOf(roleRef, namespace);
  }
}

export function isMaster(user: User): boolean {
  return user.groups.includes(MASTERS_GROUP);
}

/** `clusterrole.rbac.authorization.k8s.io "edit"`. */
function roleText({ kind, name }: RoleRef): string {
  return `${kind.toLowerCase()}.${RBAC_GROUP} ${JSON.stringify(name)}`;
}

function reasonOf({ binding, subject }: Grant): string {
  const { name, namespace } = binding.metadata;
  const where = namespace === undefined ? `ClusterRoleBinding "${name}"` : `RoleBinding "${name}/${namespace}"`;
  const who = subject.kind === 'ServiceAccount' ? `${subject.name}/${subject.namespace || namespace}` : subject.name;
  const { roleRef } = binding;
  return `RBAC: allowed by ${where} of ${roleRef.kind} "${roleRef.name}" to ${subject.kind} "${who}"`;
}
