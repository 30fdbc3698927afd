import type { Clock } from '../../foundation/time/clock.ts';
import type { EventLog } from '../../resource/watch/event-log.ts';
import type { RevisionStore } from '../store/revision-store.ts';
import type { ApprovalHolds } from '../store/unmet-rules.ts';
import type { FieldOwners } from './objects/field-owners.ts';
import type { ReadSelectionCheck } from './requests/refuse-selection.ts';
import { PackageResourcesStorage } from './storages/package-resources-storage.ts';
import type { ComputedReadings } from './storages/package-revision-readings.ts';
import {
  type Alert,
  PackageRevisionStorage,
  type ReadDeployments,
  type ReadFreezes,
} from './storages/package-revision-storage.ts';
import { PorchPackageStorage } from './storages/porch-package-storage.ts';
import type { RevisionVersions } from './table/revision-versions.ts';

export interface PackageStoragesOptions extends ComputedReadings {
  readonly store: RevisionStore;
  readonly log: EventLog;
  readonly clock: Clock;
  /** Field owners of package revisions and of their files. Default: in memory. */
  readonly owners?: { readonly revisions: FieldOwners; readonly resources: FieldOwners };
  /** Default: versions start again with the process. */
  readonly versions?: RevisionVersions;
  /** Default: warnings are kept nowhere. */
  readonly alert?: Alert | undefined;
  /** Default: none. */
  readonly deployments?: ReadDeployments | undefined;
  /** Default: labels and owners decide about no approval. */
  readonly selection?: ReadSelectionCheck | undefined;
  /** Default: no plan holds a revision. */
  readonly holds?: ApprovalHolds | undefined;
  /** Default: none. */
  readonly freezes?: ReadFreezes | undefined;
}

/** The storages of all kinds that show packages in Git, over one store. */
export function packageStorages(options: PackageStoragesOptions) {
  const { store, log, clock, owners, versions, alert, explain, preview, deployments, selection, holds, freezes } =
    options;
  const revisions = new PackageRevisionStorage(store, log, {
    ...{ clock, alert, explain, preview, deployments, selection, holds, freezes },
    ...(owners === undefined ? {} : { owners: owners.revisions }),
    ...(versions === undefined ? {} : { versions }),
  });
  const resources = new PackageResourcesStorage(store, revisions, owners?.resources);
  return { revisions, resources, packages: new PorchPackageStorage(store, log, clock) };
}
