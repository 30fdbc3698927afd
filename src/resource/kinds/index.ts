import type { Kind } from '../schema/kind.ts';
import { customResourceDefinitionKind } from './apiextensions/custom-resource-definition.ts';
import { apiServiceKind } from './apiregistration/api-service.ts';
import { leaseKind } from './coordination/lease.ts';
import { configMapKind } from './core/config-map.ts';
import { eventKind } from './core/event.ts';
import { namespaceKind } from './core/namespace.ts';
import { podKind } from './core/pod.ts';
import { secretKind } from './core/secret.ts';
import { serviceKind } from './core/service.ts';
import { serviceAccountKind } from './core/service-account.ts';
import { workloadClusterKind } from './infra/workload-cluster.ts';
import { ipClaimKind, ipPrefixKind, networkInstanceKind } from './ipam/ipam.ts';
import { packageRevKind } from './porch/package-rev.ts';
import { packageRevisionKind } from './porch/package-revision.ts';
import { packageRevisionResourcesKind } from './porch/package-revision-resources.ts';
import { packageVariantKind } from './porch/package-variant.ts';
import { packageVariantSetKind } from './porch/package-variant-set.ts';
import { porchPackageKind } from './porch/porch-package.ts';
import { repositoryKind } from './porch/repository.ts';
import { clusterRoleKind, roleKind } from './rbac/role.ts';
import { clusterRoleBindingKind, roleBindingKind } from './rbac/role-binding.ts';
import { deliveryTargetKind } from './sluice/delivery/delivery-target.ts';
import { packageDeliveryKind } from './sluice/delivery/package-delivery.ts';
import { freezeKind } from './sluice/freeze.ts';
import { functionPolicyKind } from './sluice/function-policy.ts';
import { notificationKind } from './sluice/notification.ts';
import { packagePolicyKind } from './sluice/package-policy.ts';
import { analysisRunKind } from './sluice/wave/analysis-run.ts';
import { analysisTemplateKind } from './sluice/wave/analysis-template.ts';
import { wavePlanKind } from './sluice/wave/wave-plan.ts';
import { waveTargetKind } from './sluice/wave/wave-target.ts';

/** Kinds whose objects are kept as they are written, in contrast to those that are derived from Git. */
export const OBJECT_KINDS: readonly Kind[] = [
  namespaceKind,
  repositoryKind,
  packageVariantKind,
  packageVariantSetKind,
  deliveryTargetKind,
  packageDeliveryKind,
  wavePlanKind,
  waveTargetKind,
  packagePolicyKind,
  freezeKind,
  functionPolicyKind,
  notificationKind,
  analysisTemplateKind,
  analysisRunKind,
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
  workloadClusterKind,
];

/** Kinds whose objects are a view of the packages in Git. */
export const PACKAGE_KINDS: readonly Kind[] = [packageRevisionKind, packageRevisionResourcesKind, porchPackageKind];

/** Read-only kinds about the server itself. */
export const SERVER_KINDS: readonly Kind[] = [apiServiceKind, podKind];
