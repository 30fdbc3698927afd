import type { DeliveredPackages } from '../../src/delivery/delivered/delivered-packages.ts';
import { currentDeploymentOf, deploymentOf } from '../../src/delivery/status/target-deployment.ts';
import type { DeliveryExplanation } from '../../src/package/model/revision/explanation.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { DeliveryTarget } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';

/** Adds what the engine reports of a delivered revision. The report is about the revision in the status of the target. */
export function withDeployment(
  explanation: DeliveryExplanation,
  { key, revision }: PackageRevision,
  target: DeliveryTarget,
  delivered: DeliveredPackages,
): DeliveryExplanation {
  const isReported = explanation.state === 'Delivered' || explanation.state === 'Held';
  if (!isReported || delivered.find(target, key)?.revision !== revision) return explanation;
  const deployment = currentDeploymentOf(target, delivered.of(target));
  if (deployment === undefined) return explanation;
  const { synced, healthy } = deploymentOf(deployment, key);
  return { ...explanation, deployment: { synced: { ...synced }, healthy: { ...healthy } } };
}
