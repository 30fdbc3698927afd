import { LEDGER_LABEL } from '../../package/trust/cluster/ledger-objects.ts';
import type { CustomResourceDefinition } from '../../resource/kinds/apiextensions/custom-resource-definition.ts';
import { customResourceDefinitionKind } from '../../resource/kinds/apiextensions/custom-resource-definition.ts';
import { configMapKind } from '../../resource/kinds/core/config-map.ts';
import { namespaceKind, SYSTEM_NAMESPACES } from '../../resource/kinds/core/namespace.ts';
import { type Secret, secretKind } from '../../resource/kinds/core/secret.ts';
import { serviceKind } from '../../resource/kinds/core/service.ts';
import { serviceAccountKind } from '../../resource/kinds/core/service-account.ts';
import { RBAC_GROUP } from '../../resource/kinds/rbac/role.ts';
import type { KubernetesObject } from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { isBuiltInDefinition } from './transferred-kinds.ts';

/** Why an object is not exported. `quiet` means that every server makes its own. */
export type LeftOut = 'quiet' | 'secret' | 'token' | 'ledger' | 'deleted' | 'controlled';

const BOOTSTRAPPING = 'kubernetes.io/bootstrapping';
const TOKEN_TYPES: ReadonlySet<string> = new Set([
  ...['kubernetes.io/service-account-token', 'bootstrap.kubernetes.io/token'],
]);

/** Undefined if the object is exported. */
export function whyLeftOut(kind: Kind, object: KubernetesObject, includesSecrets: boolean): LeftOut | undefined {
  const { metadata } = object;
  if (isOfServer(kind, object)) return 'quiet';
  if (isLedgerObject(object)) return 'ledger';
  if (metadata.deletionTimestamp !== undefined) return 'deleted';
  // Its controller makes it again, and would not know this one.
  if ((metadata.ownerReferences ?? []).some(({ controller }) => controller === true)) return 'controlled';
  if (kind !== secretKind) return undefined;
  // Valid on the server that issued it only.
  if (TOKEN_TYPES.has((object as Secret).type)) return 'token';
  return includesSecrets ? undefined : 'secret';
}

/** True for a part of the trust ledger of a cluster, which says for one server which keys it trusts and which statements it has seen. */
export function isLedgerObject({ metadata: { labels = {} } }: KubernetesObject): boolean {
  return Object.hasOwn(labels, LEDGER_LABEL);
}

function isOfServer(kind: Kind, object: KubernetesObject): boolean {
  const { name, namespace, labels } = object.metadata;
  if (kind === namespaceKind) return SYSTEM_NAMESPACES.includes(name) || name.startsWith('kube-');
  if (kind === configMapKind) return name === 'kube-root-ca.crt';
  if (kind === serviceAccountKind) return name === 'default';
  if (kind === serviceKind) return name === 'kubernetes' && namespace === 'default';
  if (kind.group === RBAC_GROUP) return labels?.[BOOTSTRAPPING] !== undefined || name.startsWith('system:');
  if (kind === customResourceDefinitionKind) return isBuiltInDefinition(object as CustomResourceDefinition);
  return false;
}
