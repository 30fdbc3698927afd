import { SluiceError } from '../../foundation/sluice-error.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { type DeliveryTarget, deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { engineSettings, healthyType } from '../../resource/kinds/sluice/delivery/engine-settings.ts';
import { sameValue } from '../../resource/object/same-value.ts';
import type { Authorizer } from '../authorization/authorizer.ts';
import { isAllowed, permission } from '../authorization/require-allowed.ts';
import type { PlannedWrite } from '../handlers/handler.ts';

type Spec = Pick<DeliveryTarget['spec'], 'allowOutOfBand' | 'engine' | 'rollback' | 'selector'> & {
  readonly git?: Partial<DeliveryTarget['spec']['git']>;
};

/** Returns the condition types that policies require as gates, in any namespace. */
export type PolicyGates = () => Promise<ReadonlySet<string>>;

/**
 * Checks writes of DeliveryTargets. With `allowOutOfBand`, a target delivers packages that any user who may push has published,
 * without gates and approval: a trust decision like those of Repositories, so it requires the right to update Repositories in the
 * namespace. So does the change of the repository of a target, and of the engine whose reports open gates and roll packages back, for users
 * who may only update targets. To create a target for any repository does not: it gives a user nothing that the Secret, which the user must
 * be allowed to read, does not give. The exception is a target whose health a policy requires as a gate. Unchanged fields are not checked
 * again, unless the selected packages change.
 */
export async function checkDeliveryTarget(
  { user, kind, operation, object, old }: PlannedWrite,
  authorizer: Authorizer,
  policyGates: PolicyGates,
): Promise<void> {
  if (kind.group !== deliveryTargetKind.group || kind.kind !== deliveryTargetKind.kind || operation === 'delete')
    return;
  const [before, after] = [old, object].map((one) => (one as { readonly spec?: Spec } | undefined)?.spec);
  const { name, namespace = '' } = object.metadata;
  const change = guardedChange(before, after);
  const gateChange = change === undefined ? changeOfHealth(before, after) : undefined;
  if (change === undefined && gateChange === undefined) return;
  const { group, plural: resource } = repositoryKind;
  if (await isAllowed(authorizer, permission(user, 'update', { group, resource, namespace, name: '' }))) return;
  const gate = healthyType(name);
  const why = change ?? ((await policyGates()).has(gate) ? `a policy requires ${gate}, and ${gateChange}` : undefined);
  if (why === undefined) return;
  const right = `the verb "update" on ${resource}.${group} in the namespace`;
  const message = `deliverytargets.sluice.dev ${JSON.stringify(name)} is forbidden: ${why}, and to change that takes ${right}, which User ${JSON.stringify(user.name)} does not have; an administrator can write it`;
  throw new SluiceError('Refused', message, { details: { name, group: kind.group, kind: kind.plural } });
}

/** The effect of a change that always takes the right. */
function guardedChange(before: Spec | undefined, after: Spec | undefined): string | undefined {
  if (after?.allowOutOfBand === true && !sameValue(before, after))
    return 'spec.allowOutOfBand delivers what was published without gates and approval';
  if (before === undefined) return undefined;
  if (before.git?.repo !== undefined && before.git.repo !== after?.git?.repo)
    return 'spec.git.repo says which clusters get the packages';
  if (!sameValue(engineSettings(before.engine), engineSettings(after?.engine)))
    return 'spec.engine says whose reports open the gates on the health of the target';
  if (!sameValue(before.rollback ?? null, after?.rollback ?? null))
    return 'spec.rollback says when reports of the engine replace what is delivered';
  return undefined;
}

/** The effect of a change that takes the right where a policy requires the health of the target. */
function changeOfHealth(before: Spec | undefined, after: Spec | undefined): string | undefined {
  if (before === undefined) return 'the target says whose health that is';
  const isSame = sameValue(
    [before.git ?? null, before.selector ?? null],
    [after?.git ?? null, after?.selector ?? null],
  );
  return isSame ? undefined : 'spec.git and spec.selector say which packages must be healthy';
}
