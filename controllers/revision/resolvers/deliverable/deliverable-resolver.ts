import { gatesOf } from '../../../../kptfile-schema/index.ts';
import { specOrMetadataChanged } from '../../../../src/controller/predicates.ts';
import { type Source, watchKind } from '../../../../src/controller/source.ts';
import type { PackageRevision } from '../../../../src/package/model/package-revision.ts';
import type { Resolver, ResolverSubject } from '../../../../src/package/plan/resolver.ts';
import type { RevisionStore } from '../../../../src/package/store/revision-store.ts';
import { type DeliveryTarget, deliveryTargetKind } from '../../../../src/resource/kinds/delivery-target.ts';
import { DEFAULT_NAMESPACE, type ObjectKey } from '../../../../src/resource/object/object.ts';
import {
  DELIVERABLE_TYPE,
  type DeliverabilityOptions,
  deliverabilityJudge,
  describeRefusal,
} from './deliverability.ts';

export interface DeliverableOptions extends DeliverabilityOptions {
  readonly store: Pick<RevisionStore, 'list'>;
  /** Condition types that policies ask for of a revision. */
  readonly requiredGates: (revision: PackageRevision) => readonly string[];
}

export interface Deliverable {
  readonly resolver: Resolver;
  /** Wake the drafts and proposals that a target may select when the target changes. */
  readonly sources: readonly Source<ObjectKey>[];
}

/** Says before publication what delivery would refuse after it; see README.md. */
export function deliverableResolver(options: DeliverableOptions): Deliverable {
  const { store, requiredGates } = options;
  const judge = deliverabilityJudge(options);
  const judged = ({ revision, files, kptfile }: ResolverSubject) => judge(revision, files, kptfile);

  const isGate = ({ kptfile, revision }: ResolverSubject) =>
    gatesOf(kptfile).includes(DELIVERABLE_TYPE) || requiredGates(revision).includes(DELIVERABLE_TYPE);

  const resolver: Resolver = {
    name: 'deliverable',
    claims: [DELIVERABLE_TYPE],
    judgesProposals: true,
    applies: (subject) =>
      subject.conditions.has(DELIVERABLE_TYPE) || isGate(subject) || judged(subject).refusal !== undefined,
    resolve(subject) {
      const deliverability = judged(subject);
      const { refusal, targets } = deliverability;
      if (refusal === undefined && !isGate(subject)) return { withdraw: [DELIVERABLE_TYPE] };
      const names = targets.join(', ');
      const answer =
        refusal === undefined
          ? {
              status: 'True' as const,
              reason: 'Deliverable',
              message: names === '' ? 'no target selects it' : `${names} can deliver it`,
            }
          : { status: 'False' as const, reason: refusal.reason, message: describeRefusal(deliverability) ?? '' };
      return { conditions: [{ type: DELIVERABLE_TYPE, ...answer, inputs: ['content'] }] };
    },
  };

  const pending = (target: DeliveryTarget): ObjectKey[] => {
    const { repositories, packages } = target.spec.selector;
    const namespace = target.metadata.namespace ?? DEFAULT_NAMESPACE;
    return [...store.list({ lifecycle: 'Draft' }), ...store.list({ lifecycle: 'Proposed' })]
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
        map: (event) => [...pending(event.object), ...(event.type === 'update' ? pending(event.old) : [])],
      }),
    ],
  };
}
