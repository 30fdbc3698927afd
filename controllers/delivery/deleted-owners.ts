import type { PackageRefusal } from '../../src/delivery/selection/select-revisions.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { DEFAULT_NAMESPACE, type Stored } from '../../src/resource/object/object.ts';

/**
 * The refusals, of which those of folders of a target that does not exist say so: the usual cause is a target with a new name. A writer of
 * the branch chooses the name in a folder, so that other namespaces are not searched: the message would show what is there.
 */
export async function namingDeletedOwners(
  client: Client,
  { metadata: { namespace = DEFAULT_NAMESPACE } }: Stored,
  refused: readonly PackageRefusal[],
  signal: AbortSignal,
): Promise<readonly PackageRefusal[]> {
  const prefix = namespace === DEFAULT_NAMESPACE ? '' : `${namespace}/`;
  const isGone = new Map<string, boolean>();
  for (const { otherTarget } of refused) {
    if (otherTarget === undefined || isGone.has(otherTarget) || !otherTarget.startsWith(prefix)) continue;
    const name = otherTarget.slice(prefix.length);
    if (name.includes('/') || isGone.size >= MAX_OWNERS) continue;
    isGone.set(otherTarget, (await client.find(deliveryTargetKind, { namespace, name }, { signal })) === undefined);
  }
  return refused.map((one) => {
    if (one.otherTarget === undefined || isGone.get(one.otherTarget) !== true) return one;
    const advice = `target ${one.otherTarget} does not exist here; if this target replaces it, see "Rename or move a target" in docs/delivery.md`;
    return { ...one, message: `${one.message}; ${advice}` };
  });
}

/** Owners that are looked up in one delivery. */
const MAX_OWNERS = 20;
