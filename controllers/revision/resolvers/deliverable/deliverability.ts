import { settingsOf } from '../../../../src/delivery/delivery-target.ts';
import { type ManifestsOutcome, manifestsOf } from '../../../../src/delivery/manifests.ts';
import type { Refusal } from '../../../../src/delivery/refusal.ts';
import type { PackageRevision } from '../../../../src/package/package-revision.ts';
import { selects } from '../../../../src/package/policy-objects.ts';
import type { DeliveryTarget } from '../../../../src/resource/kinds/delivery-target.ts';
import type { Repository } from '../../../../src/resource/kinds/repository.ts';
import { DEFAULT_NAMESPACE } from '../../../../src/resource/object.ts';

/** Whether the targets that select a revision could deliver it as it is. Without a gate it is there only while they could not. */
export const DELIVERABLE_TYPE = 'sluice.dev/Deliverable';

export interface DeliverabilityOptions {
  /** All DeliveryTargets. */
  readonly targets: () => readonly DeliveryTarget[];
  readonly repositoryOf: (revision: PackageRevision) => Repository | undefined;
}

/** What the targets that select a revision would say to its files. */
export interface Deliverability {
  /** Names of the targets, as people know them. */
  readonly targets: readonly string[];
  /** Why one of them would refuse it; undefined if none would. */
  readonly refusal: Refusal | undefined;
}

/** Judges revisions by the targets as they are at each call. */
export function deliverabilityJudge({ targets, repositoryOf }: DeliverabilityOptions) {
  const outcomes = new WeakMap<ReadonlyMap<string, Buffer>, ManifestsOutcome>();

  function selectingTargets(revision: PackageRevision, kptfile: PackageRevision['kptfile']): DeliveryTarget[] {
    const { key, record, namespace } = revision;
    const row = { key, kptfile, ...(record === undefined ? {} : { record }) };
    const repository = repositoryOf(revision);
    return targets().filter(
      (target) =>
        (target.metadata.namespace ?? DEFAULT_NAMESPACE) === namespace &&
        selects(target.spec.selector, row, repository),
    );
  }

  function refusalFor(files: ReadonlyMap<string, Buffer>, selecting: readonly DeliveryTarget[]): Refusal | undefined {
    if (selecting.length === 0) return undefined;
    const outcome = outcomes.get(files) ?? manifestsOf(files);
    outcomes.set(files, outcome);
    if (outcome.refused !== undefined) return outcome.refused;
    const [secret] = outcome.manifests.openSecrets;
    const target = selecting.find(({ spec }) => spec.allowSecrets !== true);
    if (secret === undefined || target === undefined) return undefined;
    const message = `${secret} is not encrypted, and target ${settingsOf(target).name} does not allow that: seal or encrypt it, refer to an external one, or set allowSecrets: true on the target`;
    return { reason: 'UnencryptedSecret', message };
  }

  /** `kptfile` may be ahead of the revision. */
  return (
    revision: PackageRevision,
    files: ReadonlyMap<string, Buffer>,
    kptfile = revision.kptfile,
  ): Deliverability => {
    const selecting = selectingTargets(revision, kptfile);
    return { targets: selecting.map((target) => settingsOf(target).name), refusal: refusalFor(files, selecting) };
  };
}

/** One sentence for people. */
export function describeRefusal({ targets, refusal }: Deliverability): string | undefined {
  return refusal === undefined ? undefined : `${targets.join(', ')} cannot deliver it: ${refusal.message}`;
}
