import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { Client } from '../../resource/client/client.ts';
import { sameValue } from '../../resource/object/same-value.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { BOOTSTRAP_BINDINGS, BOOTSTRAP_ROLES } from './bootstrap-objects.ts';
import { missingRules } from './missing-rules.ts';
import type { ClusterRole, RoleBinding } from './rbac-objects.ts';

/** False keeps a role or binding as users wrote it. */
const AUTO_UPDATE = 'rbac.authorization.kubernetes.io/autoupdate';
const MAX_ATTEMPTS = 5;

/**
 * Creates the roles and bindings that every server starts with, and updates those that exist, as kube-apiserver does: missing rules
 * and subjects of this version are added, additions of users stay. An object with the annotation
 * `rbac.authorization.kubernetes.io/autoupdate: "false"` stays unchanged, as does a binding to another role. Errors as of `Client`.
 */
export async function reconcileBootstrapObjects(
  client: Client,
  kinds: { readonly ClusterRole: Kind; readonly ClusterRoleBinding: Kind },
): Promise<void> {
  for (const [kind, objects] of [
    [kinds.ClusterRole, BOOTSTRAP_ROLES],
    [kinds.ClusterRoleBinding, BOOTSTRAP_BINDINGS],
  ] as const)
    for (const object of objects) await reconcile(client, kind, object);
}

type BootstrapObject = ClusterRole | RoleBinding;

async function reconcile(client: Client, kind: Kind, wanted: BootstrapObject): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const present = await client.find(kind, { name: wanted.metadata.name });
    try {
      if (present === undefined) await client.create(kind, wanted);
      else {
        const next = updatedFields(present as unknown as BootstrapObject, wanted);
        if (next !== undefined) await client.update(kind, { ...present, ...next } as typeof present);
      }
      return;
    } catch (error) {
      const isOvertaken = isSluiceError(error, 'AlreadyExists') || isSluiceError(error, 'Conflict');
      if (!isOvertaken || attempt >= MAX_ATTEMPTS) throw error;
    }
  }
}

/** The fields to change in an object that exists; undefined if there are none. */
function updatedFields(present: BootstrapObject, wanted: BootstrapObject): Partial<BootstrapObject> | undefined {
  if (present.metadata.annotations?.[AUTO_UPDATE] === 'false') return undefined;
  if ('roleRef' in wanted) {
    if (!('roleRef' in present) || !sameValue(present.roleRef, wanted.roleRef)) return undefined;
    const subjects = present.subjects ?? [];
    const lacking = (wanted.subjects ?? []).filter((subject) => !subjects.some((one) => sameValue(one, subject)));
    return lacking.length === 0 ? undefined : { subjects: [...subjects, ...lacking] };
  }
  // The rules of an aggregated role are those of other roles.
  if ('aggregationRule' in present && present.aggregationRule != null) return undefined;
  const rules = 'rules' in present ? (present.rules ?? []) : [];
  // Undefined for rules that are too many to be compared; only a user can have written those.
  const lacking = missingRules(rules, wanted.rules ?? []) ?? [];
  return lacking.length === 0 ? undefined : { rules: [...rules, ...lacking] };
}
