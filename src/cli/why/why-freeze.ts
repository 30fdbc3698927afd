import { describeFreeze } from '../../../controllers/approval/describe-freeze.ts';
import type { ObjectExplanation } from '../../../controllers/package-variant/describe-variant.ts';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { freezeRuleOf } from '../../package/store/policies/freeze-objects.ts';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { packageDeliveryKind } from '../../resource/kinds/sluice/delivery/package-delivery.ts';
import { type Freeze, freezeKind } from '../../resource/kinds/sluice/freeze.ts';
import { wavePlanKind } from '../../resource/kinds/sluice/wave/wave-plan.ts';
import type { KubernetesObject, Stored } from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import type { Access } from '../access/access.ts';
import { missingObject } from './expect-object.ts';

/** Refusals of a server that does not have a kind, or whose caller may not read it. */
const UNREADABLE = ['Refused', 'NotFound', 'Unsupported'] as const;

/**
 * Explains a Freeze of the namespace, else of all namespaces; `<namespace>/<name>` means that of the namespace. What waits is counted as far
 * as the caller may read it.
 */
export async function explainFreeze(access: Access, text: string): Promise<ObjectExplanation> {
  const { namespace: own, systemNamespace, clock } = access;
  const [name = '', named] = text.split('/', 2).reverse();
  const namespaces = named === undefined ? [...new Set([own, systemNamespace])] : [named];
  const freeze = await findIn(access, namespaces, name);
  if (freeze === undefined) {
    const lists = await Promise.all(namespaces.map((namespace) => itemsOf(access, freezeKind, namespace)));
    throw missingObject(
      access,
      freezeKind,
      text,
      lists.flat().map((one) => one.metadata.name),
      [],
    );
  }
  const rule = freezeRuleOf(freeze, systemNamespace);
  const where = rule.isInstallation ? undefined : rule.namespace;
  const [revisions, repositories, targets, deliveries, plans] = await Promise.all([
    itemsOf(access, packageRevisionKind, where),
    itemsOf(access, repositoryKind, where),
    itemsOf(access, deliveryTargetKind, where),
    itemsOf(access, packageDeliveryKind, where),
    itemsOf(access, wavePlanKind, where),
  ]);
  return describeFreeze(rule, { revisions, repositories, targets, deliveries, plans }, own, clock.now());
}

async function findIn(
  { client, namespace: own }: Access,
  namespaces: readonly string[],
  name: string,
): Promise<Stored<Freeze> | undefined> {
  for (const namespace of namespaces) {
    try {
      const found = await client.find(freezeKind, { namespace, name });
      if (found !== undefined) return found;
    } catch (error) {
      // Users need not have rights in the namespace of the installation.
      if (namespace === own || !isSluiceError(error, 'Refused')) throw error;
    }
  }
  return undefined;
}

async function itemsOf<T extends KubernetesObject>(
  { client }: Access,
  kind: Kind<T>,
  namespace: string | undefined,
): Promise<readonly Stored<T>[]> {
  try {
    return (await client.list(kind, namespace === undefined ? {} : { namespace })).items;
  } catch (error) {
    if (error instanceof SluiceError && UNREADABLE.some((code) => error.code === code)) return [];
    throw error;
  }
}
