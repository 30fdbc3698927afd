import type { PackageRevision } from '../../package/model/revision/package-revision.ts';
import { type SelectedRevision, selects } from '../../package/store/policies/selected-packages.ts';
import type { Repository } from '../../resource/kinds/porch/repository.ts';
import type { DeliveryTarget } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import type { DeepReadonly } from '../../resource/object/object.ts';

/** A published revision, with what targets select it by. */
export type AwaitedRevision = SelectedRevision & Pick<PackageRevision, 'revision'>;

/**
 * The number of the revision of its package that a target delivers once it has finished: this one, or that of a pin; undefined for a target that does
 * not select it, or is being deleted. Also of one that is suspended or cannot be reached, and of one that refuses the revision, such as an out-of-band
 * one: its clusters do not have what they should have.
 */
export function wantedRevision(
  { metadata, spec }: DeepReadonly<DeliveryTarget>,
  revision: AwaitedRevision,
  repository: DeepReadonly<Repository> | undefined,
): number | undefined {
  if (metadata.deletionTimestamp !== undefined || !selects(spec.selector, revision, repository)) return undefined;
  const { key } = revision;
  const pin = spec.pins?.find((one) => one.repository === key.repository && one.package === key.package);
  return (pin ?? revision).revision;
}
