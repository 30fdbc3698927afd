import { DeliveredPackages } from '../../src/delivery/delivered/delivered-packages.ts';
import { counted, listed } from '../../src/foundation/text/counted.ts';
import { sluiceCommand } from '../../src/package/api/explain/explainer.ts';
import { type FreezeRule, freezesAt, freezeText } from '../../src/package/model/policy/approval-rules.ts';
import { selects } from '../../src/package/store/policies/selected-packages.ts';
import { LATEST_REVISION_LABEL, type PackageRevision } from '../../src/resource/kinds/porch/package-revision.ts';
import type { Repository } from '../../src/resource/kinds/porch/repository.ts';
import type { DeliveryTarget } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import type { PackageDelivery } from '../../src/resource/kinds/sluice/delivery/package-delivery.ts';
import type { WavePlan } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import type { Stored } from '../../src/resource/object/object.ts';
import type { ObjectExplanation } from '../package-variant/describe-variant.ts';
import { labelledPackage } from './describe-policy.ts';
import { freezeOptions } from './explain-freeze.ts';

/** Names that one line shows. */
const MAX_NAMED = 5;
const ENDED_PHASES: readonly (string | undefined)[] = ['Completed', 'Aborted', 'RolledBack'];

/** What a freeze can stop: the objects of its namespace, or of all namespaces for one of the installation. */
export interface StoppedBy {
  readonly revisions: readonly Stored<PackageRevision>[];
  readonly repositories: readonly Stored<Repository>[];
  readonly targets: readonly Stored<DeliveryTarget>[];
  readonly deliveries: readonly Stored<PackageDelivery>[];
  readonly plans: readonly Stored<WavePlan>[];
}

/** What a freeze stops, since when, who started it, how it ends, and what waits for its end. `now`: milliseconds since the epoch. */
export function describeFreeze(freeze: FreezeRule, from: StoppedBy, own: string, now: number): ObjectExplanation {
  const { name, namespace, isInstallation } = freeze;
  // A freeze of all namespaces stops those of others too.
  const isOther = ({ metadata }: Stored) => metadata.namespace !== own;
  const nameOf = (one: Stored) => (isOther(one) ? keyOf(one.metadata.namespace, one.metadata.name) : one.metadata.name);
  const argumentOf = (one: Stored, kind = '') =>
    `${kind}${one.metadata.name}${isOther(one) ? ` -n ${one.metadata.namespace}` : ''}`;
  const isInForce = freezesAt([freeze], now).length > 0;
  const subject = `Freeze ${namespace}/${name}`;
  const commands = [sluiceCommand('freeze', 'end', name, ...freezeOptions(isInstallation, namespace, own))];
  if (!isInForce) {
    const reasons = [freezeText(freeze), 'its end has passed: it stops nothing, and can be deleted'];
    return { subject, state: 'ended', reasons, next: [], commands };
  }
  const proposed = from.revisions.filter(({ spec }) => spec.lifecycle === 'Proposed');
  const plans = from.plans.filter(({ status }) => !ENDED_PHASES.includes(status?.phase));
  const waiting = (names: readonly string[], what: string) =>
    names.length === 0 ? what : `${what}: ${listed(names, MAX_NAMED)}`;
  const held = heldDeliveries(from);
  return {
    subject,
    state: 'in force',
    reasons: [
      freezeText(freeze),
      `nothing is approved except by break-glass, no wave plan goes on, and nothing is delivered in ${isInstallation ? 'any namespace' : `namespace ${namespace}`}`,
      `users who may delete ${subject} can end it`,
      waiting(proposed.map(nameOf), `${counted(proposed.length, 'proposed revision')} cannot be published`),
      waiting(held, `${counted(held.length, 'delivery', 'deliveries')} cannot be made`),
      waiting(plans.map(nameOf), `${counted(plans.length, 'wave plan')} cannot go on`),
    ],
    next: [
      ...proposed.slice(0, MAX_NAMED).map((one) => argumentOf(one)),
      ...plans.slice(0, MAX_NAMED).map((one) => argumentOf(one, 'waveplan/')),
    ],
    commands,
  };
}

/** Latest revisions that a target selects and does not have; a target that waits for another reason has that too. */
function heldDeliveries({ revisions, repositories, targets, deliveries }: StoppedBy): string[] {
  const known = new Map(repositories.map((one) => [keyOf(one.metadata.namespace, one.metadata.name), one]));
  const delivered = DeliveredPackages.from(deliveries);
  const inNamespace = Map.groupBy(targets, ({ metadata }) => metadata.namespace);
  return revisions.flatMap((revision) => {
    const { metadata, spec, status } = revision;
    const isLatest = spec.lifecycle === 'Published' && metadata.labels?.[LATEST_REVISION_LABEL] === 'true';
    const { revision: number = 0 } = spec;
    if (!isLatest || number < 1 || status?.outOfBand !== undefined) return [];
    const one = labelledPackage(revision);
    const key = { repository: spec.repository, package: spec.packageName };
    const repository = known.get(keyOf(metadata.namespace, spec.repository));
    return (inNamespace.get(metadata.namespace) ?? [])
      .filter((target) => {
        const { selector, suspend, pins = [] } = target.spec;
        if (suspend === true || !selects(selector, one, repository)) return false;
        if (pins.some((pin) => pin.repository === key.repository && pin.package === key.package)) return false;
        return (delivered.find(target, key)?.revision ?? 0) < number;
      })
      .map((target) => `${metadata.name} to ${target.metadata.name}`);
  });
}

function keyOf(namespace: string | undefined, name: string): string {
  return `${namespace ?? ''}/${name}`;
}
