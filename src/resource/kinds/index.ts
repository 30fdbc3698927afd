import type { Kind } from '../schema/kind.ts';
import { apiServiceKind } from './api-service.ts';
import { configMapKind } from './config-map.ts';
import { customResourceDefinitionKind } from './custom-resource-definition.ts';
import { deliveryTargetKind } from './delivery-target.ts';
import { eventKind } from './event.ts';
import { functionPolicyKind } from './function-policy.ts';
import { ipClaimKind, ipPrefixKind, networkInstanceKind } from './ipam.ts';
import { leaseKind } from './lease.ts';
import { namespaceKind } from './namespace.ts';
import { packagePolicyKind } from './package-policy.ts';
import { packageRevKind } from './package-rev.ts';
import { packageRevisionKind } from './package-revision.ts';
import { packageRevisionResourcesKind } from './package-revision-resources.ts';
import { podKind } from './pod.ts';
import { porchPackageKind } from './porch-package.ts';
import { repositoryKind } from './repository.ts';
import { clusterRoleKind, roleKind } from './role.ts';
import { clusterRoleBindingKind, roleBindingKind } from './role-binding.ts';
import { secretKind } from './secret.ts';
import { serviceKind } from './service.ts';
import { serviceAccountKind } from './service-account.ts';

/** Kinds whose objects are kept as they are written, in contrast to those that are derived from Git. */
export const OBJECT_KINDS: readonly Kind[] = [
  namespaceKind,
  repositoryKind,
  deliveryTargetKind,
  packagePolicyKind,
  functionPolicyKind,
  secretKind,
  configMapKind,
  serviceAccountKind,
  serviceKind,
  packageRevKind,
  eventKind,
  leaseKind,
  roleKind,
  clusterRoleKind,
  roleBindingKind,
  clusterRoleBindingKind,
  customResourceDefinitionKind,
  networkInstanceKind,
  ipPrefixKind,
  ipClaimKind,
];

/** Kinds whose objects are a view of the packages in Git. */
export const PACKAGE_KINDS: readonly Kind[] = [packageRevisionKind, packageRevisionResourcesKind, porchPackageKind];

/** Kinds that clients only read: what the server itself does. */
export const SERVER_KINDS: readonly Kind[] = [apiServiceKind, podKind];
