import { SluiceError } from '../../foundation/sluice-error.ts';
import { sameValue } from '../../resource/object/same-value.ts';
import type { User } from '../authentication/user.ts';
import { listText, missingRules, ruleText } from '../authorization/missing-rules.ts';
import { FULL_AUTHORITY, isMaster, type RbacAuthorizer } from '../authorization/rbac-authorizer.ts';
import {
  type ClusterRole,
  type PolicyRule,
  RBAC_GROUP,
  RBAC_PLURALS,
  type RbacKind,
  type Role,
  type RoleBinding,
} from '../authorization/rbac-objects.ts';
import { permission } from '../authorization/require-allowed.ts';

export interface RbacWrite {
  readonly user: User;
  readonly kind: RbacKind;
  /** The object to store, complete and with the namespace of the request. */
  readonly object: Role | ClusterRole | RoleBinding;
  /** The stored object; undefined for a create. */
  readonly old?: Role | ClusterRole | RoleBinding | undefined;
}

/** Characters of missing rules that a refusal shows. */
const MAX_RULES_CHARACTERS = 8192;

/** True for a kind whose writes `checkEscalation` must check. */
export function isRbacKind(kind: { readonly group: string; readonly kind: string }): boolean {
  return kind.group === RBAC_GROUP && Object.hasOwn(RBAC_PLURALS, kind.kind);
}

/**
 * Checks a create or update of an RBAC object, after the write itself was authorised: users cannot grant rights that they do not have.
 * The writer of a role must have all its permissions, or the verb `escalate` on it; the writer of a binding must have all permissions
 * of its role, or the verb `bind` on the role. A role that aggregates the rules of others may get any rule, so it requires full
 * authority. Refused with the text of Kubernetes; NotFound if the role of a binding does not exist. It is synchronous, so that it uses
 * one state of the index.
 */
export function checkEscalation(write: RbacWrite, authorizer: RbacAuthorizer): void {
  if (isMaster(write.user)) return;
  if (write.kind === 'Role' || write.kind === 'ClusterRole') checkRole(write, authorizer);
  else checkBinding(write, write.object as RoleBinding, authorizer);
}

function checkRole(write: RbacWrite, authorizer: RbacAuthorizer): void {
  const object = write.object as ClusterRole;
  const old = write.old as ClusterRole | undefined;
  if (old !== undefined && sameGrants(old, object)) return;
  if (mayDo(write, 'escalate', RBAC_PLURALS[write.kind], object.metadata.name, authorizer)) return;
  requireGranted(write, object.rules ?? [], authorizer);
  if (!aggregates(object) && !aggregates(old)) return;
  const held = authorizer.rulesFor(write.user, '');
  if (missingRules(held, FULL_AUTHORITY)?.length !== 0)
    throw refusal(write, 'must have cluster-admin privileges to use the aggregationRule');
}

/** Labels count, since other roles aggregate a role by its labels. */
function sameGrants(old: ClusterRole, next: ClusterRole): boolean {
  return (
    sameValue(old.rules ?? [], next.rules ?? []) &&
    sameValue(old.aggregationRule ?? null, next.aggregationRule ?? null) &&
    sameValue(old.metadata.labels ?? {}, next.metadata.labels ?? {})
  );
}

function aggregates(role: ClusterRole | undefined): boolean {
  return (role?.aggregationRule?.clusterRoleSelectors?.length ?? 0) > 0;
}

function checkBinding(write: RbacWrite, { roleRef, subjects }: RoleBinding, authorizer: RbacAuthorizer): void {
  const old = write.old as RoleBinding | undefined;
  if (old !== undefined && sameValue(old.subjects ?? [], subjects ?? []) && sameValue(old.roleRef, roleRef)) return;
  const resource = roleRef.kind === 'Role' ? RBAC_PLURALS.Role : RBAC_PLURALS.ClusterRole;
  if (mayDo(write, 'bind', resource, roleRef.name, authorizer)) return;
  const rules = authorizer.rulesOf(roleRef, namespaceOf(write));
  if (rules === undefined)
    throw new SluiceError('NotFound', `${resource}.${RBAC_GROUP} ${JSON.stringify(roleRef.name)} not found`, {
      details: { name: roleRef.name, group: RBAC_GROUP, kind: resource },
    });
  requireGranted(write, rules, authorizer);
}

function requireGranted(write: RbacWrite, wanted: readonly PolicyRule[], authorizer: RbacAuthorizer): void {
  const { user } = write;
  const missing = missingRules(authorizer.rulesFor(user, namespaceOf(write)), wanted);
  if (missing?.length === 0) return;
  const list = missing?.map(ruleText).sort().join('\n') ?? 'too many to be compared; write several smaller roles';
  const shown = list.length > MAX_RULES_CHARACTERS ? `${list.slice(0, MAX_RULES_CHARACTERS)}…` : list;
  const who = `user ${JSON.stringify(user.name)} (groups=${listText(user.groups)})`;
  throw refusal(write, `${who} is attempting to grant RBAC permissions not currently held:\n${shown}`);
}

function mayDo(write: RbacWrite, verb: string, resource: string, name: string, authorizer: RbacAuthorizer): boolean {
  const about = { group: RBAC_GROUP, resource, namespace: namespaceOf(write), name };
  return authorizer.decide(permission(write.user, verb, about)).allowed;
}

function namespaceOf({ kind, object }: RbacWrite): string {
  return kind === 'Role' || kind === 'RoleBinding' ? (object.metadata.namespace ?? '') : '';
}

function refusal({ kind, object: { metadata } }: RbacWrite, reason: string): SluiceError {
  const resource = RBAC_PLURALS[kind];
  const message = `${resource}.${RBAC_GROUP} ${JSON.stringify(metadata.name)} is forbidden: ${reason}`;
  return new SluiceError('Refused', message, { details: { name: metadata.name, group: RBAC_GROUP, kind: resource } });
}
