import { settingsOf } from '../../../../src/delivery/delivery-target.ts';
import type { DeliveryRefusal } from '../../../../src/delivery/refusal.ts';
import { packageKey } from '../../../../src/delivery/selection/select-revisions.ts';
import { type ManifestsOutcome, manifestsOf } from '../../../../src/delivery/tree/manifests.ts';
import type { PackageRevision } from '../../../../src/package/model/revision/package-revision.ts';
import { selects } from '../../../../src/package/store/policy-objects.ts';
import type { Repository } from '../../../../src/resource/kinds/porch/repository.ts';
import type { DeliveryTarget } from '../../../../src/resource/kinds/sluice/delivery-target.ts';
import { DEFAULT_NAMESPACE, keyOf, keyText } from '../../../../src/resource/object/object.ts';

/** True if the targets that select a revision can deliver it. Without a gate the condition exists only while they cannot. */
export const DELIVERABLE_TYPE = 'sluice.dev/Deliverable';

export interface DeliverabilityOptions {
  /** The DeliveryTargets of a namespace; others do no harm. */
  readonly targets: (namespace: string) => readonly DeliveryTarget[];
  readonly repositoryOf: (revision: PackageRevision) => Repository | undefined;
  /** Keys of the packages that ship an object to a target; undefined before its first delivery. Default: none. */
  readonly packagesOf?: (target: DeliveryTarget, identity: string) => readonly string[] | undefined;
}

/** The decision whether the targets that select a revision accept its files. */
export interface Deliverability {
  /** Names of the targets, for messages. */
  readonly targets: readonly string[];
  /** `keyText` of the targets. */
  readonly keys: readonly string[];
  /** The objects to deliver, by identity; empty if no target selects the revision, or it cannot be delivered for another reason. */
  readonly places: ReadonlyMap<string, string>;
  /** True if one of the targets has not delivered in this process, so that the objects of other packages are unknown. */
  readonly isProvisional: boolean;
  /** The refusal of one of the targets; undefined if none refuses it. */
  readonly refusal: DeliveryRefusal | undefined;
}

const NO_PLACES: ReadonlyMap<string, string> = new Map();

/** Evaluates revisions against the targets that exist at each call. */
export function createDeliverabilityCheck({ targets, repositoryOf, packagesOf = () => [] }: DeliverabilityOptions) {
  const outcomes = new WeakMap<ReadonlyMap<string, Buffer>, ManifestsOutcome>();

  function selectingTargets(revision: PackageRevision, kptfile: PackageRevision['kptfile']): DeliveryTarget[] {
    const { key, record, namespace } = revision;
    const row = { key, kptfile, ...(record === undefined ? {} : { record }) };
    const repository = repositoryOf(revision);
    return targets(namespace).filter(
      (target) =>
        (target.metadata.namespace ?? DEFAULT_NAMESPACE) === namespace &&
        selects(target.spec.selector, row, repository),
    );
  }

  /** Two packages with the same object would overwrite each other's in the cluster. */
  function refuseDuplicate(
    places: ReadonlyMap<string, string>,
    selecting: readonly DeliveryTarget[],
    { key }: PackageRevision,
  ): DeliveryRefusal | undefined {
    const own = packageKey(key);
    for (const target of selecting)
      for (const [identity, place] of places) {
        const other = packagesOf(target, identity)?.find((name) => name !== own);
        if (other === undefined) continue;
        const message = `${place} is shipped to target ${settingsOf(target).name} by package ${other} already: rename it, or remove it from one of them`;
        return { reason: 'DuplicateObject', message };
      }
    return undefined;
  }

  function outcomeOf(files: ReadonlyMap<string, Buffer>): ManifestsOutcome {
    const outcome = outcomes.get(files) ?? manifestsOf(files);
    outcomes.set(files, outcome);
    return outcome;
  }

  function refusalFor(
    revision: PackageRevision,
    outcome: ManifestsOutcome,
    selecting: readonly DeliveryTarget[],
  ): DeliveryRefusal | undefined {
    if (outcome.refused !== undefined) return outcome.refused;
    const duplicate = refuseDuplicate(outcome.manifests.places, selecting, revision);
    if (duplicate !== undefined) return duplicate;
    const [secret] = outcome.manifests.openSecrets;
    const target = selecting.find(({ spec }) => spec.allowSecrets !== true);
    if (secret === undefined || target === undefined) return undefined;
    const message = `${secret} is not encrypted, and target ${settingsOf(target).name} does not allow that: seal or encrypt it, refer to an external Secret, or set allowSecrets: true on the target`;
    return { reason: 'UnencryptedSecret', message };
  }

  /** `kptfile` may have changes that the revision does not have yet. */
  return (
    revision: PackageRevision,
    files: ReadonlyMap<string, Buffer>,
    kptfile = revision.kptfile,
  ): Deliverability => {
    const selecting = selectingTargets(revision, kptfile);
    const outcome = selecting.length === 0 ? undefined : outcomeOf(files);
    return {
      targets: selecting.map((target) => settingsOf(target).name),
      keys: selecting.map((target) => keyText(keyOf(target))),
      places: outcome?.manifests?.places ?? NO_PLACES,
      isProvisional: selecting.some((target) => packagesOf(target, '') === undefined),
      refusal: outcome === undefined ? undefined : refusalFor(revision, outcome, selecting),
    };
  };
}

/** One sentence for users. */
export function describeRefusal({ targets, refusal }: Pick<Deliverability, 'targets' | 'refusal'>): string | undefined {
  return refusal === undefined ? undefined : `${targets.join(', ')} cannot deliver it: ${refusal.message}`;
}
