import { type PackageStoragesOptions, packageStorages } from '../../src/package/api/package-storages.ts';
import type { PackageRepositoryOptions } from '../../src/package/store/package-repository.ts';
import { RegistryClient } from '../../src/resource/client/registry-client.ts';
import {
  packageRevisionKind,
  type PackageRevision as RevisionObject,
} from '../../src/resource/kinds/porch/package-revision.ts';
import { Registry } from '../../src/resource/storage/registry.ts';
import { EventLog } from '../../src/resource/watch/event-log.ts';
import { anna, type Scratch } from './scratch-repository.ts';

/** All package kinds over a scratch repository, and a client of anna's. */
export async function packageKinds(
  scratch: Scratch,
  options: Partial<PackageRepositoryOptions> = {},
  { holds }: Pick<PackageStoragesOptions, 'holds'> = {},
) {
  const { store, repository } = await scratch.open(options);
  const log = new EventLog({ clock: scratch.clock });
  const storages = packageStorages({ store, log, clock: scratch.clock, holds });
  const registry = new Registry();
  for (const storage of [storages.revisions, storages.resources, storages.packages])
    registry.register(storage as never);
  /** As a change of a policy that selects all revisions. */
  const changePolicy = () => storages.revisions.table.repeatEvaluations(new Map([[repository.id, () => true]]));
  return { ...storages, store, repository, log, changePolicy, client: new RegistryClient(registry, anna.actor, 'cli') };
}

/** A package revision as a client writes it to create one. */
export function revision(
  packageName: string,
  workspaceName = 'v1',
  parts: { readonly metadata?: object; readonly spec?: object } = {},
): RevisionObject {
  return packageRevisionKind.complete({
    apiVersion: 'porch.kpt.dev/v1alpha1',
    kind: 'PackageRevision',
    metadata: { name: '', namespace: 'default', ...parts.metadata },
    spec: { repository: 'packages', packageName, workspaceName, ...parts.spec },
  });
}

/** The object with another lifecycle. */
export function to(
  object: RevisionObject,
  lifecycle: NonNullable<RevisionObject['spec']['lifecycle']>,
): RevisionObject {
  return { ...object, spec: { ...object.spec, lifecycle } };
}
