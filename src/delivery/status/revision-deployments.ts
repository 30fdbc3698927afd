import type { PackageRevision } from '../../package/model/revision/package-revision.ts';
import type { RevisionDeployment } from '../../resource/kinds/porch/package-revision.ts';
import type { DeliveryTarget } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { DEFAULT_NAMESPACE } from '../../resource/object/object.ts';
import type { DeliveredPackages } from '../delivered/delivered-packages.ts';
import { currentDeploymentOf, deploymentOf, type TimedDeployment } from './target-deployment.ts';

/** The targets that deliver a revision, and what their engines report. */
export function deploymentsOf(
  { key, revision, namespace }: Pick<PackageRevision, 'key' | 'revision' | 'namespace'>,
  targets: readonly DeliveryTarget[],
  delivered: DeliveredPackages,
): RevisionDeployment[] {
  if (revision < 1) return [];
  return targets
    .flatMap((target): RevisionDeployment[] => {
      if ((target.metadata.namespace ?? DEFAULT_NAMESPACE) !== namespace) return [];
      if (delivered.find(target, key)?.revision !== revision) return [];
      const deployment = currentDeploymentOf(target, delivered.of(target));
      const name = target.metadata.name;
      if (deployment === undefined) return [{ target: name, delivered: 'True', synced: 'Unknown', healthy: 'Unknown' }];
      const state = deploymentOf(deployment, key);
      const { synced, healthy } = state;
      const message = deploymentMessage(state);
      return [
        {
          ...{ target: name, delivered: 'True', synced: synced.status, healthy: healthy.status },
          since: Date.parse(synced.since) > Date.parse(healthy.since) ? synced.since : healthy.since,
          ...(message === '' ? {} : { message }),
        },
      ];
    })
    .sort((a, b) => (a.target < b.target ? -1 : 1));
}

/** How the message of a target as a whole begins; what follows is the cause. */
const COUNT = /^\d+ of \d+ packages? (?:is|are) \w+; /;

/** What an engine reports, where something is missing; empty for a package that is synced and healthy. */
export function deploymentMessage({ synced, healthy }: TimedDeployment): string {
  const texts = [synced, healthy]
    .filter(({ status }) => status !== 'True')
    .map(({ reason, message }) => message || reason);
  const [first, second] = texts.map((text) => text.replace(COUNT, ''));
  if (first === second) return texts[0] ?? '';
  return texts.join('; ');
}
