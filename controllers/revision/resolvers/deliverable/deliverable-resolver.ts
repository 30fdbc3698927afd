import { gatesOf } from '../../../../kptfile-schema/index.ts';
import { specOrMetadataChanged } from '../../../../src/controller/predicates.ts';
import { type Source, triggerSource, watchKind } from '../../../../src/controller/source.ts';
import type { PackageRevision } from '../../../../src/package/model/package-revision.ts';
import type { Resolver, ResolverSubject } from '../../../../src/package/plan/resolver.ts';
import type { RevisionStore } from '../../../../src/package/store/revision-store.ts';
import { type DeliveryTarget, deliveryTargetKind } from '../../../../src/resource/kinds/delivery-target.ts';
import { packageRevisionKind } from '../../../../src/resource/kinds/package-revision.ts';
import { DEFAULT_NAMESPACE, keyOf, keyText, type ObjectKey } from '../../../../src/resource/object/object.ts';
import type { TargetObjects } from '../../../delivery/target-objects.ts';
import {
  DELIVERABLE_TYPE,
  type Deliverability,
  type DeliverabilityOptions,
  deliverabilityJudge,
  describeRefusal,
} from './deliverability.ts';
import { DraftsByObject } from './drafts-by-object.ts';

export interface DeliverableOptions extends Omit<DeliverabilityOptions, 'packagesOf'> {
  readonly store: Pick<RevisionStore, 'list' | 'find'>;
  /** Which packages ship which objects, and changes of that. Default: nothing is known. */
  readonly shipped?: Pick<TargetObjects, 'packagesOf' | 'subscribe'>;
  /** Condition types that policies ask for of a revision. */
  readonly requiredGates: (revision: PackageRevision) => readonly string[];
}

export interface Deliverable {
  readonly resolver: Resolver;
  /** Wake the drafts and proposals that a target may select when the target changes, and those that share objects with what it ships. */
  readonly sources: readonly Source<ObjectKey>[];
}

/** Says before publication what delivery would refuse after it; see README.md. */
export function deliverableResolver(options: DeliverableOptions): Deliverable {
  const { store, requiredGates, shipped, ...rest } = options;
  const packagesOf = shipped && ((target: DeliveryTarget, identity: string) => shipped.packagesOf(target, identity));
  const judge = deliverabilityJudge({ ...rest, ...(packagesOf === undefined ? {} : { packagesOf }) });
  const drafts = new DraftsByObject();

  const judged = (subject: ResolverSubject): Deliverability => {
    const { revision, files, kptfile } = subject;
    const deliverability = judge(revision, files, kptfile);
    drafts.note(revision, deliverability, isKept(subject, deliverability));
    return deliverability;
  };

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
      // The first delivery of a process says whether it still holds; to withdraw it until then would be two commits for nothing.
      if (isKept(subject, deliverability)) return {};
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

  const isPending = (id: string) => ['Draft', 'Proposed'].includes(store.find(id)?.lifecycle ?? '');

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
      triggerSource(
        (enqueue) =>
          shipped?.subscribe((changes) => {
            for (const key of drafts.concernedBy(changes)) enqueue(key);
          }) ?? (() => undefined),
      ),
      watchKind(packageRevisionKind, {
        predicate: ({ object }) => !isPending(keyText(keyOf(object))),
        map: ({ object }) => {
          drafts.forget(keyText(keyOf(object)));
          return [];
        },
      }),
    ],
  };
}

/** True if another process found an object to be shipped by another package too, and it is not known yet whether it still is. */
function isKept({ conditions }: ResolverSubject, { isProvisional, refusal, places, targets }: Deliverability): boolean {
  const condition = conditions.get(DELIVERABLE_TYPE);
  if (!isProvisional || refusal !== undefined) return false;
  if (condition?.status !== 'False' || condition.reason !== 'DuplicateObject') return false;
  const message = condition.message ?? '';
  return [...places.values()].some((place) =>
    targets.some((target) => message.includes(`: ${place} is shipped to target ${target} by package `)),
  );
}
