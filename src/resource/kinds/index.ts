import type { Kind } from '../kind.ts';
import { configMapKind } from './config-map.ts';
import { deliveryTargetKind } from './delivery-target.ts';
import { eventKind } from './event.ts';
import { ipClaimKind, ipPrefixKind, networkInstanceKind } from './ipam.ts';
import { packagePolicyKind } from './package-policy.ts';
import { packageRevisionKind } from './package-revision.ts';
import { packageRevisionResourcesKind } from './package-revision-resources.ts';
import { repositoryKind } from './repository.ts';
import { secretKind } from './secret.ts';

/** Kinds whose objects are kept as they are written, in contrast to those that are derived from Git. */
export const OBJECT_KINDS: readonly Kind[] = [
  repositoryKind,
  deliveryTargetKind,
  packagePolicyKind,
  secretKind,
  configMapKind,
  eventKind,
  networkInstanceKind,
  ipPrefixKind,
  ipClaimKind,
];

/** Kinds whose objects are a view of the packages in Git. */
export const PACKAGE_KINDS: readonly Kind[] = [packageRevisionKind, packageRevisionResourcesKind];
