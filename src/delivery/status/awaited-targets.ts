import type { PackageRevision } from '../../package/model/revision/package-revision.ts';
import { type SelectedRevision, selects } from '../../package/store/policies/selected-packages.ts';
import type { Repository } from '../../resource/kinds/porch/repository.ts';
import type { DeliveryTarget } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import type { DeepReadonly } from '../../resource/object/object.ts';

/** A published revision, with what targets select it by. */
export type AwaitedRevision = SelectedRevision & Pick<PackageRevision, 'revision'>;

/**
 * True for a target of whose namespace a revision is deployed only once the target has delivered it: it selects it. Also one that is suspended or
 * cannot be reached, and one that refuses the revision, such as an out-of-band one: its cluster does not have what it should have. Not one that a user
 * keeps at another revision by a pin, nor one that is being deleted.
 */
export function awaitsDelivery(
  { metadata, spec }: DeepReadonly<DeliveryTarget>,
  revision: AwaitedRevision,
  repository: DeepReadonly<Repository> | undefined,
): boolean {
  if (metadata.deletionTimestamp !== undefined) return false;
  const { key } = revision;
  const pin = spec.pins?.find((one) => one.repository === key.repository && one.package === key.package);
  if (pin !== undefined && pin.revision !== revision.revision) return false;
  return selects(spec.selector, revision, repository);
}
