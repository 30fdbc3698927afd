import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { Client } from '../../resource/client/client.ts';
import { customKind } from '../../resource/kinds/apiextensions/custom-kind.ts';
import {
  type CustomResourceDefinition,
  customResourceDefinitionKind,
} from '../../resource/kinds/apiextensions/custom-resource-definition.ts';
import { leaseKind } from '../../resource/kinds/coordination/lease.ts';
import { configMapKind } from '../../resource/kinds/core/config-map.ts';
import { eventKind } from '../../resource/kinds/core/event.ts';
import { namespaceKind } from '../../resource/kinds/core/namespace.ts';
import { secretKind } from '../../resource/kinds/core/secret.ts';
import { serviceKind } from '../../resource/kinds/core/service.ts';
import { serviceAccountKind } from '../../resource/kinds/core/service-account.ts';
import { OBJECT_KINDS } from '../../resource/kinds/index.ts';
import { packageRevKind } from '../../resource/kinds/porch/package-rev.ts';
import { packageVariantKind } from '../../resource/kinds/porch/package-variant.ts';
import { packageVariantSetKind } from '../../resource/kinds/porch/package-variant-set.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { clusterRoleKind, roleKind } from '../../resource/kinds/rbac/role.ts';
import { clusterRoleBindingKind, roleBindingKind } from '../../resource/kinds/rbac/role-binding.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { packageDeliveryKind } from '../../resource/kinds/sluice/delivery/package-delivery.ts';
import { wavePlanKind } from '../../resource/kinds/sluice/wave/wave-plan.ts';
import { waveTargetKind } from '../../resource/kinds/sluice/wave/wave-target.ts';
import type { Kind } from '../../resource/schema/kind.ts';

/** Programs write them again: events, locks, what Porch derives from packages, what targets deliver, and what plans did. */
const RECREATED: readonly Kind[] = [eventKind, leaseKind, packageRevKind, packageDeliveryKind, waveTargetKind];
/** Others depend on them: namespaces, definitions, credentials and rights. */
const FIRST: readonly Kind[] = [
  ...[namespaceKind, customResourceDefinitionKind, secretKind, configMapKind, serviceAccountKind, serviceKind],
  ...[clusterRoleKind, roleKind, clusterRoleBindingKind, roleBindingKind],
];
/** After the policies that gate their packages. */
const LAST: readonly Kind[] = [
  ...[repositoryKind, deliveryTargetKind, packageVariantKind, packageVariantSetKind, wavePlanKind],
];

const OTHER = OBJECT_KINDS.filter((kind) => ![...RECREATED, ...FIRST, ...LAST].includes(kind));

/** The kinds of Sluice that are exported and imported, in the order in which their objects are created. */
export const TRANSFERRED_KINDS: readonly Kind[] = [...FIRST, ...OTHER, ...LAST];

/** Groups of Kubernetes' own kinds; a cluster has many of their objects that are not related to Sluice. */
const KUBERNETES_GROUPS: ReadonlySet<string> = new Set(FIRST.map(({ group }) => group));

/** True for the kinds of Sluice, Porch and Nephio. */
export function isOwnKind(kind: Kind): boolean {
  return OTHER.includes(kind) || LAST.includes(kind);
}

/** True for the definition of a kind that Sluice or Kubernetes brings. */
export function isBuiltInDefinition({ spec }: CustomResourceDefinition): boolean {
  if (KUBERNETES_GROUPS.has(spec.group)) return true;
  return [...OBJECT_KINDS].some(({ group, kind }) => group === spec.group && kind === spec.names.kind);
}

/** The kinds of definitions that users made, by group and name, each in the version that is stored. */
export function userKinds(definitions: Iterable<CustomResourceDefinition>): Kind[] {
  const kinds = [...definitions].filter((definition) => !isBuiltInDefinition(definition)).flatMap(storedVersion);
  return kinds.sort((a, b) => (`${a.group}/${a.kind}` < `${b.group}/${b.kind}` ? -1 : 1));
}

function storedVersion(definition: CustomResourceDefinition): Kind[] {
  const served = definition.spec.versions.filter((version) => version.served);
  const version = served.find(({ storage }) => storage) ?? served[0];
  return version === undefined ? [] : [customKind(definition, version.name)];
}

/** Definitions of a server; none for a caller who may not read them, and for a server without them. */
export async function definitionsOf(client: Client): Promise<readonly CustomResourceDefinition[]> {
  try {
    return (await client.list(customResourceDefinitionKind)).items;
  } catch (error) {
    if (isSluiceError(error, 'Refused') || isSluiceError(error, 'NotFound')) return [];
    throw error;
  }
}
