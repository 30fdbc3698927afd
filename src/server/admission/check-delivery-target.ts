import { SluiceError } from '../../foundation/sluice-error.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery-target.ts';
import { sameValue } from '../../resource/object/same-value.ts';
import type { Authorizer } from '../authorization/authorizer.ts';
import { isAllowed, permission } from '../authorization/require-allowed.ts';
import type { PlannedWrite } from '../handlers/handler.ts';

type Target = { readonly spec?: { readonly allowOutOfBand?: boolean; readonly git?: { readonly repo?: string } } };

/**
 * Judges writes of DeliveryTargets. One with `allowOutOfBand` delivers what any user who may push publishes, without gates and approval,
 * and one with another repository delivers to other clusters. Both determine what is trusted where, as Repositories do, so that they need
 * the right to update Repositories in the namespace. What does not change is not judged again, unless other packages are delivered by it.
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
  const message = `deliverytargets.sluice.dev ${JSON.stringify(name)} is forbidden: ${why}, and to change that takes ${right}, which User ${JSON.stringify(user.name)} does not have; ask an administrator to write it`;
  throw new SluiceError('Refused', message, { details: { name, group: kind.group, kind: kind.plural } });
}
