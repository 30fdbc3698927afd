import { gatesOf } from '../../../../kptfile-schema/index.ts';
import { specOrMetadataChanged } from '../../../../src/controller/predicates.ts';
import { type Source, watchKind } from '../../../../src/controller/source.ts';
import { settingsOf } from '../../../../src/delivery/delivery-target.ts';
import { type ManifestsOutcome, manifestsOf } from '../../../../src/delivery/manifests.ts';
import type { Refusal } from '../../../../src/delivery/refusal.ts';
import type { PackageRevision } from '../../../../src/package/package-revision.ts';
import { selects } from '../../../../src/package/policy-objects.ts';
import type { Resolver, ResolverSubject } from '../../../../src/package/resolver.ts';
import type { RevisionStore } from '../../../../src/package/revision-store.ts';
import { type DeliveryTarget, deliveryTargetKind } from '../../../../src/resource/kinds/delivery-target.ts';
import type { Repository } from '../../../../src/resource/kinds/repository.ts';
import { DEFAULT_NAMESPACE, type ObjectKey } from '../../../../src/resource/object.ts';

/** Whether the targets that select a draft could deliver it as it is. Without a gate it is there only while they could not. */
export const DELIVERABLE_TYPE = 'sluice.dev/Deliverable';

export interface DeliverableOptions {
  readonly store: Pick<RevisionStore, 'list'>;
  /** All DeliveryTargets. */
  readonly targets: () => readonly DeliveryTarget[];
  readonly repositoryOf: (revision: PackageRevision) => Repository | undefined;
  /** Condition types that policies ask for of a revision. */
  readonly requiredGates: (revision: PackageRevision) => readonly string[];
}

export interface Deliverable {
  readonly resolver: Resolver;
  /** Wake the drafts that a target may select when the target changes. */
  readonly sources: readonly Source<ObjectKey>[];
}

/** Tells before a proposal what delivery would refuse after publication; see README.md. */
export function deliverableResolver(options: DeliverableOptions): Deliverable {
  const { store, targets, repositoryOf, requiredGates } = options;
  const outcomes = new WeakMap<ReadonlyMap<string, Buffer>, ManifestsOutcome>();

  function selectingTargets({ revision, kptfile }: ResolverSubject): DeliveryTarget[] {
    const { key, record, namespace } = revision;
    const row = { key, kptfile, ...(record === undefined ? {} : { record }) };
    const repository = repositoryOf(revision);
    return targets().filter(
      (target) =>
        (target.metadata.namespace ?? DEFAULT_NAMESPACE) === namespace &&
        selects(target.spec.selector, row, repository),
    );
  }

  function outcomeOf({ files }: ResolverSubject): ManifestsOutcome {
    const outcome = outcomes.get(files) ?? manifestsOf(files);
    outcomes.set(files, outcome);
    return outcome;
  }

  function refusalFor(subject: ResolverSubject, selecting: readonly DeliveryTarget[]): Refusal | undefined {
    if (selecting.length === 0) return undefined;
    const { refused, manifests } = outcomeOf(subject);
    if (refused !== undefined) return refused;
    const [secret] = manifests.openSecrets;
    const target = selecting.find(({ spec }) => spec.allowSecrets !== true);
    if (secret === undefined || target === undefined) return undefined;
    const message = `${secret} is not encrypted, and target ${settingsOf(target).name} does not allow that: seal or encrypt it, refer to an external one, or set allowSecrets: true on the target`;
    return { reason: 'UnencryptedSecret', message };
  }

  const isGate = ({ kptfile, revision }: ResolverSubject) =>
    gatesOf(kptfile).includes(DELIVERABLE_TYPE) || requiredGates(revision).includes(DELIVERABLE_TYPE);

  const resolver: Resolver = {
    name: 'deliverable',
    claims: [DELIVERABLE_TYPE],
    applies: (subject) =>
      subject.conditions.has(DELIVERABLE_TYPE) ||
      isGate(subject) ||
      refusalFor(subject, selectingTargets(subject)) !== undefined,
    resolve(subject) {
      const selecting = selectingTargets(subject);
      const refusal = refusalFor(subject, selecting);
      if (refusal === undefined && !isGate(subject)) return { withdraw: [DELIVERABLE_TYPE] };
      const names = selecting.map((target) => settingsOf(target).name).join(', ');
      const answer =
        refusal === undefined
          ? {
              status: 'True' as const,
              reason: 'Deliverable',
              message: names === '' ? 'no target selects it' : `${names} can deliver it`,
            }
          : {
              status: 'False' as const,
              reason: refusal.reason,
              message: `${names} cannot deliver it: ${refusal.message}`,
            };
      return { conditions: [{ type: DELIVERABLE_TYPE, ...answer, inputs: ['content'] }] };
    },
  };

  const drafts = (target: DeliveryTarget): ObjectKey[] => {
    const { repositories, packages } = target.spec.selector;
    const namespace = target.metadata.namespace ?? DEFAULT_NAMESPACE;
    return store
      .list({ lifecycle: 'Draft' })
      .filter(
        ({ key, namespace: own }) =>
          own === namespace &&
          (repositories?.includes(key.repository) ?? true) &&
          (packages?.includes(key.package) ?? true),
      )
      .map(({ name }) => ({ name, namespace }));
  };
  return {
    resolver,
    sources: [
      watchKind(deliveryTargetKind, {
        predicate: specOrMetadataChanged,
        map: (event) => [...drafts(event.object), ...(event.type === 'update' ? drafts(event.old) : [])],
      }),
    ],
  };
}
