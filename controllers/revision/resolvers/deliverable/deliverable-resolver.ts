import { gatesOf } from '../../../../kptfile-schema/index.ts';
import { specOrMetadataChanged } from '../../../../src/controller/predicates.ts';
import { type Source, triggerSource, watchKind } from '../../../../src/controller/source.ts';
import type { PackageRevision } from '../../../../src/package/model/revision/package-revision.ts';
import type { Resolver, ResolverSubject } from '../../../../src/package/plan/ports/resolver.ts';
import type { RevisionStore } from '../../../../src/package/store/revision-store.ts';
import { packageRevisionKind } from '../../../../src/resource/kinds/porch/package-revision.ts';
import {
  type DeliveryTarget,
  deliveryTargetKind,
} from '../../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { DEFAULT_NAMESPACE, keyOf, keyText, type ObjectKey } from '../../../../src/resource/object/object.ts';
import type { TargetObjects } from '../../../delivery/target/target-objects.ts';
import {
  createDeliverabilityCheck,
  DELIVERABLE_TYPE,
  type Deliverability,
  type DeliverabilityOptions,
  describeRefusal,
} from './deliverability.ts';
import { DraftsByObject } from './drafts-by-object.ts';

export interface DeliverableOptions extends Omit<DeliverabilityOptions, 'packagesOf'> {
  readonly store: Pick<RevisionStore, 'list' | 'find'>;
  /** The objects that packages ship, and changes of them. Default: unknown. */
  readonly shipped?: Pick<TargetObjects, 'packagesOf' | 'subscribe'>;
  /** Condition types that policies require of a revision. */
  readonly requiredGates: (revision: PackageRevision) => readonly string[];
}

export interface Deliverable {
  readonly resolver: Resolver;
  /** Wake the drafts and proposals that a target may select when the target changes, and those that share objects with its packages. */
  readonly sources: readonly Source<ObjectKey>[];
}

/** Reports before publication what delivery would refuse after it; see README.md. */
export function deliverableResolver(options: DeliverableOptions): Deliverable {
  const { store, requiredGates, shipped, ...rest } = options;
  const packagesOf = shipped && ((target: DeliveryTarget, identity: string) => shipped.packagesOf(target, identity));
  const deliverabilityCheck = createDeliverabilityCheck({
    ...rest,
    ...(packagesOf === undefined ? {} : { packagesOf }),
  });
  const drafts = new DraftsByObject();

  const check = (subject: ResolverSubject): Deliverability => {
    const { revision, files, kptfile } = subject;
    const deliverability = deliverabilityCheck.check(revision, files, kptfile);
    drafts.record(revision, deliverability, isKept(subject, deliverability));
    return deliverability;
  };

  const isGate = ({ kptfile, revision }: ResolverSubject) =>
    gatesOf(kptfile).includes(DELIVERABLE_TYPE) || requiredGates(revision).includes(DELIVERABLE_TYPE);

  const resolver: Resolver = {
    name: 'deliverable',
    claims: [DELIVERABLE_TYPE],
    checksProposals: true,
    applies: (subject) => subject.conditions.has(DELIVERABLE_TYPE) || isGate(subject) || needsReport(check(subject)),
    async resolve(subject) {
      const { revision, files, kptfile } = subject;
      await deliverabilityCheck.prepare(revision, files, kptfile);
      const deliverability = check(subject);
      const { refusal, targets } = deliverability;
      // The first delivery of a process confirms or corrects it; withdrawing it until then could cost two needless commits.
      if (isKept(subject, deliverability)) return {};
      if (refusal === undefined && !isGate(subject))
        return subject.conditions.has(DELIVERABLE_TYPE) ? { withdraw: [DELIVERABLE_TYPE] } : {};
      const names = targets.join(', ');
      const condition =
        refusal === undefined
          ? {
              status: 'True' as const,
              reason: 'Deliverable',
              message: names === '' ? 'no target selects it' : `${names} can deliver it`,
            }
          : { status: 'False' as const, reason: refusal.reason, message: describeRefusal(deliverability) ?? '' };
      return { conditions: [{ type: DELIVERABLE_TYPE, ...condition, inputs: ['content'] }] };
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
            for (const key of drafts.affectedBy(changes)) enqueue(key);
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

/** True if targets refuse the package, or a program has to render it before that is known. */
function needsReport({ refusal, isPending }: Deliverability): boolean {
  return refusal !== undefined || isPending;
}

/** True if an earlier process found a duplicate object, and this process cannot confirm it yet. */
function isKept({ conditions }: ResolverSubject, { isProvisional, refusal, places, targets }: Deliverability): boolean {
  const condition = conditions.get(DELIVERABLE_TYPE);
  if (!isProvisional || refusal !== undefined) return false;
  if (condition?.status !== 'False' || condition.reason !== 'DuplicateObject') return false;
  const message = condition.message ?? '';
  return [...places.values()].some((place) =>
    targets.some((target) => message.includes(`: ${place} is shipped to target ${target} by package `)),
  );
}
