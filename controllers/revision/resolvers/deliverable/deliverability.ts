import { settingsOf } from '../../../../src/delivery/delivery-target.ts';
import type { DeliveryRefusal } from '../../../../src/delivery/refusal.ts';
import {
  type BuildPackage,
  buildFromFiles,
  isBuiltFromFiles,
  packageBuilder,
} from '../../../../src/delivery/render/build-package.ts';
import type { RenderMode } from '../../../../src/delivery/render/render-mode.ts';
import { packageKey } from '../../../../src/delivery/selection/select-revisions.ts';
import type { ManifestsOutcome } from '../../../../src/delivery/tree/manifests.ts';
import type { PackageRevision } from '../../../../src/package/model/revision/package-revision.ts';
import { selects } from '../../../../src/package/store/policies/selected-packages.ts';
import type { Repository } from '../../../../src/resource/kinds/porch/repository.ts';
import type { DeliveryTarget } from '../../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { DEFAULT_NAMESPACE, keyOf, keyText } from '../../../../src/resource/object/object.ts';

/** True if the targets that select a revision can deliver it. Without a gate the condition exists only while they cannot. */
export const DELIVERABLE_TYPE = 'sluice.dev/Deliverable';

/** The reason of `sluice why` for which targets would not deliver a draft or proposal well, as the condition has it. */
export const UNDELIVERABLE = 'Undeliverable';

export interface DeliverabilityOptions {
  /** The DeliveryTargets of a namespace; others do no harm. */
  readonly targets: (namespace: string) => readonly DeliveryTarget[];
  readonly repositoryOf: (revision: PackageRevision) => Repository | undefined;
  /** Makes the manifests of packages. Default: without programs that render. */
  readonly buildPackage?: BuildPackage;
  /** Keys of the packages that ship an object to a target; undefined before its first delivery. Default: none. */
  readonly packagesOf?: (target: DeliveryTarget, identity: string) => readonly string[] | undefined;
}

/** The decision whether the targets that select a revision accept its files. */
export interface Deliverability {
  /** Names of the targets that select it, for messages. */
  readonly targets: readonly string[];
  /** Names of those that refuse it. */
  readonly refusing: readonly string[];
  /** True if a program has to render it first: see `prepare`. */
  readonly isPending: boolean;
  /** `keyText` of the targets. */
  readonly keys: readonly string[];
  /** The objects to deliver, by identity; empty if no target selects the revision, or it cannot be delivered for another reason. */
  readonly places: ReadonlyMap<string, string>;
  /** True if one of the targets has not delivered in this process, so that the objects of other packages are unknown. */
  readonly isProvisional: boolean;
  /** The refusal of the first target that refuses it; undefined if none does. */
  readonly refusal: DeliveryRefusal | undefined;
  /** The refusals of `refusing`, in its order. */
  readonly refusals: readonly PublicationProblem[];
}

/** A problem that a publication would have at a target. `isDelivered`: the target would deliver the package in spite of it. */
type PublicationProblem = DeliveryRefusal & { readonly isDelivered?: true };

const NO_PLACES: ReadonlyMap<string, string> = new Map();

export interface DeliverabilityCheck {
  /** Evaluates a revision. `kptfile` may have changes that the revision does not have yet. */
  check(
    revision: PackageRevision,
    files: ReadonlyMap<string, Buffer>,
    kptfile?: PackageRevision['kptfile'],
  ): Deliverability;
  /** Renders the files for the targets that select the revision, so that a check of the same files is complete. */
  prepare(
    revision: PackageRevision,
    files: ReadonlyMap<string, Buffer>,
    kptfile?: PackageRevision['kptfile'],
  ): Promise<void>;
}

/** Outcomes by the way of rendering. */
type Outcomes = Map<RenderMode, ManifestsOutcome>;

/** Evaluates revisions against the targets that exist at each call, each with its own settings. */
export function createDeliverabilityCheck({
  targets,
  repositoryOf,
  buildPackage = packageBuilder({}),
  packagesOf = () => [],
}: DeliverabilityOptions): DeliverabilityCheck {
  const outcomes = new WeakMap<ReadonlyMap<string, Buffer>, Outcomes>();

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

  /**
   * Two packages with the same object would overwrite each other's in the cluster. Both are delivered: which of them is wrong is for users to decide,
   * and of objects such as Namespaces both copies are often the same.
   */
  function refuseDuplicate(
    places: ReadonlyMap<string, string>,
    target: DeliveryTarget,
    { key }: PackageRevision,
  ): PublicationProblem | undefined {
    const own = packageKey(key);
    for (const [identity, place] of places) {
      const other = packagesOf(target, identity)?.find((name) => name !== own);
      if (other === undefined) continue;
      const message = `${place} is shipped to target ${settingsOf(target).name} by package ${other} already, and each would overwrite the other's: rename it, or remove it from one of them`;
      return { reason: 'DuplicateObject', message, isDelivered: true };
    }
    return undefined;
  }

  function outcomesOf(files: ReadonlyMap<string, Buffer>): Outcomes {
    const known = outcomes.get(files) ?? new Map();
    outcomes.set(files, known);
    return known;
  }

  /** Undefined if a program has to render the package first. */
  function outcomeOf(files: ReadonlyMap<string, Buffer>, { spec }: DeliveryTarget): ManifestsOutcome | undefined {
    const { render = 'none' } = spec;
    const known = outcomesOf(files).get(render);
    if (known !== undefined || !isBuiltFromFiles(files, render)) return known;
    const outcome = buildFromFiles(files, render);
    outcomesOf(files).set(render, outcome);
    return outcome;
  }

  function refusalFor(
    revision: PackageRevision,
    outcome: ManifestsOutcome | undefined,
    target: DeliveryTarget,
  ): PublicationProblem | undefined {
    if (outcome?.manifests === undefined) return outcome?.refused;
    const duplicate = refuseDuplicate(outcome.manifests.places, target, revision);
    if (duplicate !== undefined) return duplicate;
    const [secret] = outcome.manifests.openSecrets;
    if (secret === undefined || target.spec.allowSecrets === true) return undefined;
    const message = `${secret} is not encrypted, and target ${settingsOf(target).name} does not allow that: seal or encrypt it, refer to an external Secret, or set allowSecrets: true on the target`;
    return { reason: 'UnencryptedSecret', message };
  }

  return {
    check(revision, files, kptfile = revision.kptfile) {
      const selecting = selectingTargets(revision, kptfile);
      const evaluated = selecting.map((target) => {
        const outcome = outcomeOf(files, target);
        return { target, outcome, refusal: refusalFor(revision, outcome, target) };
      });
      const refusing = evaluated.filter(({ refusal }) => refusal !== undefined);
      const names = (list: readonly { readonly target: DeliveryTarget }[]) =>
        list.map(({ target }) => settingsOf(target).name);
      return {
        targets: names(evaluated),
        refusing: names(refusing),
        isPending: evaluated.some(({ outcome }) => outcome === undefined),
        keys: selecting.map((target) => keyText(keyOf(target))),
        places: placesOf(evaluated.map(({ outcome }) => outcome)),
        isProvisional: selecting.some((target) => packagesOf(target, '') === undefined),
        refusal: refusing[0]?.refusal,
        refusals: refusing.flatMap(({ refusal }) => refusal ?? []),
      };
    },
    async prepare(revision, files, kptfile = revision.kptfile) {
      for (const target of selectingTargets(revision, kptfile)) {
        const known = outcomeOf(files, target);
        if (known !== undefined && known.isTemporary !== true) continue;
        const { render = 'none' } = target.spec;
        const outcome = await buildPackage(
          { files, package: revision.key.package, namespace: revision.namespace },
          render,
        );
        outcomesOf(files).set(render, outcome);
      }
    },
  };
}

/** The same map for the same outcomes, by which drafts are recognized that did not change. */
function placesOf(outcomes: readonly (ManifestsOutcome | undefined)[]): ReadonlyMap<string, string> {
  const maps = [...new Set(outcomes.flatMap((outcome) => outcome?.manifests?.places ?? []))];
  const [first = NO_PLACES] = maps;
  return maps.length < 2 ? first : new Map(maps.flatMap((places) => [...places]));
}

/** For users: the targets that refuse the revision, by what they state; undefined if none does. */
export function describeRefusal({
  refusing,
  refusals,
}: Pick<Deliverability, 'refusing' | 'refusals'>): string | undefined {
  const targetsOf = new Map<string, string[]>();
  for (const [index, { message, isDelivered }] of refusals.entries()) {
    const what = isDelivered === true ? 'would deliver the same object of two packages' : 'cannot deliver it';
    const text = `${what}: ${message}`;
    targetsOf.set(text, [...(targetsOf.get(text) ?? []), refusing[index] ?? '']);
  }
  if (targetsOf.size === 0) return undefined;
  const parts = [...targetsOf].map(([text, names]) => `${names.join(', ')} ${text}`);
  return parts.join('; ');
}
