import { SluiceError } from '../../foundation/sluice-error.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery-target.ts';
import { sameValue } from '../../resource/object/same-value.ts';
import type { Authorizer } from '../authorization/authorizer.ts';
import { isAllowed, permission } from '../authorization/require-allowed.ts';
import type { PlannedWrite } from '../handlers/handler.ts';

type Target = { readonly spec?: { readonly allowOutOfBand?: boolean; readonly git?: { readonly repo?: string } } };

/**
 * Checks writes of DeliveryTargets. With `allowOutOfBand`, a target delivers packages that any user who may push has published,
 * without gates and approval: a trust decision like those of Repositories, so it requires the right to update Repositories in the
 * namespace. So does the change of the repository of a target, for users who may only update targets. To create one for any repository
 * does not: it gives a user nothing that the Secret, which the user must be allowed to read, does not give. Unchanged fields are not
 * checked again, unless the selected packages change.
 */
export async function checkDeliveryTarget(
  { user, kind, operation, object, old }: PlannedWrite,
  authorizer: Authorizer,
): Promise<void> {
  if (kind.group !== deliveryTargetKind.group || kind.kind !== deliveryTargetKind.kind || operation === 'delete')
    return;
  const [before, after] = [(old as Target | undefined)?.spec, (object as Target).spec];
  const why =
    after?.allowOutOfBand === true && !sameValue(before, after)
      ? 'spec.allowOutOfBand delivers what was published without gates and approval'
      : before?.git?.repo !== undefined && before.git.repo !== after?.git?.repo
        ? 'spec.git.repo says which clusters get the packages'
        : undefined;
  if (why === undefined) return;
  const { name, namespace = '' } = object.metadata;
  const { group, plural: resource } = repositoryKind;
  if (await isAllowed(authorizer, permission(user, 'update', { group, resource, namespace, name: '' }))) return;
  const right = `the verb "update" on ${resource}.${group} in the namespace`;
  const message = `deliverytargets.sluice.dev ${JSON.stringify(name)} is forbidden: ${why}, and to change that takes ${right}, which User ${JSON.stringify(user.name)} does not have; an administrator can write it`;
  throw new SluiceError('Refused', message, { details: { name, group: kind.group, kind: kind.plural } });
}
