import { conditionsOf, gatesOf, type Kptfile } from '../../../../kptfile-schema/index.ts';
import { type Source, watchKind } from '../../../../src/controller/source.ts';
import { isSameDelivery } from '../../../../src/delivery/delivered/delivered-package.ts';
import type { DeliveredPackages } from '../../../../src/delivery/delivered/delivered-packages.ts';
import type { Clock } from '../../../../src/foundation/time/clock.ts';
import type { IssuedCondition } from '../../../../src/package/model/gates/verdict.ts';
import type { PackageRevision } from '../../../../src/package/model/revision/package-revision.ts';
import type { Resolver } from '../../../../src/package/plan/ports/resolver.ts';
import type { RevisionStore } from '../../../../src/package/store/revision-store.ts';
import {
  type DeliveryTarget,
  deliveryTargetKind,
} from '../../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { healthyType } from '../../../../src/resource/kinds/sluice/delivery/engine-settings.ts';
import { DEFAULT_NAMESPACE, keyOf, type ObjectKey } from '../../../../src/resource/object/object.ts';
import { sameValue } from '../../../../src/resource/object/same-value.ts';
import { deliveredSource } from '../../../delivery/delivered-source.ts';
import {
  ENGINE_SOURCE,
  HEALTHY_TYPES,
  healthCondition,
  healthKey,
  isHealthyType,
  wantedPackages,
} from './target-health.ts';

export interface HealthyOptions {
  readonly store: Pick<RevisionStore, 'list'>;
  /** All DeliveryTargets. */
  readonly targets: () => readonly DeliveryTarget[];
  readonly delivered: DeliveredPackages;
  readonly clock: Clock;
  /** See `deliveredSource`. */
  readonly quietMs?: number;
  /** Condition types that policies require of a revision. */
  readonly requiredGates: (revision: PackageRevision) => readonly string[];
}

export interface Healthy {
  readonly resolver: Resolver;
  /** Wakes the drafts and proposals with a condition on a target when the health of the target changes. */
  readonly sources: readonly Source<ObjectKey>[];
}

/** Settles conditions on the health of targets, which gate a package until what it depends on runs; see README.md. */
export function healthyResolver(options: HealthyOptions): Healthy {
  const { store, targets, delivered, requiredGates, clock, quietMs } = options;
  const gatesIn = (revision: PackageRevision, kptfile: Kptfile) =>
    [...new Set([...gatesOf(kptfile), ...requiredGates(revision)])].filter(isHealthyType);

  const resolver: Resolver = {
    name: 'healthy',
    claims: [HEALTHY_TYPES],
    checksProposals: true,
    applies: ({ conditions, revision, kptfile }) =>
      [...conditions.keys()].some(isHealthyType) || gatesIn(revision, kptfile).length > 0,
    resolve({ revision, kptfile, conditions }) {
      const required = requiredGates(revision);
      const gates = gatesIn(revision, kptfile);
      return {
        conditions: gates.map((type) => {
          const wanted = wantedPackages(revision, required.includes(type));
          return healthCondition(type, targets(), revision.namespace, wanted, delivered);
        }),
        withdraw: [...conditions.keys()].filter((type) => isHealthyType(type) && !gates.includes(type)),
      };
    },
  };

  /** A gate of a policy has its condition since the first run. */
  const concerned = ({ name: target, namespace = DEFAULT_NAMESPACE }: ObjectKey): ObjectKey[] => {
    const type = healthyType(target);
    return [...store.list({ lifecycle: 'Draft' }), ...store.list({ lifecycle: 'Proposed' })]
      .filter(
        ({ kptfile, namespace: own }) =>
          own === namespace &&
          kptfile !== undefined &&
          (conditionsOf(kptfile).has(type) || gatesOf(kptfile).includes(type)),
      )
      .map(({ name }) => ({ name, namespace }));
  };
  return {
    resolver,
    sources: [
      watchKind(deliveryTargetKind, {
        predicate: (event) => event.type !== 'update' || healthKey(event.object) !== healthKey(event.old),
        map: ({ object }) => concerned(keyOf(object)),
      }),
      deliveredSource({
        ...{ clock, map: concerned },
        ...(quietMs === undefined ? {} : { quietMs }),
        // The status of the target is about one content of its packages, and can be known before their objects.
        predicate: (event) => event.type !== 'update' || !isSameDelivery(event.object, event.old),
      }),
    ],
  };
}

/** What names the engine in the basis of a verdict, without the time. */
function engineFacts(external: IssuedCondition['external']): readonly (readonly string[])[] {
  return (external ?? []).filter(({ source }) => source === ENGINE_SOURCE).map(({ id, value }) => [id, value]);
}

/** The reason why a condition that is True no longer is, at the moment of an approval; undefined if there is none. */
export function unhealthyProblem(
  revision: PackageRevision,
  targets: readonly DeliveryTarget[],
  delivered: DeliveredPackages,
  requiredGates: readonly string[],
): { readonly type: string; readonly message: string } | undefined {
  const { kptfile, record, namespace } = revision;
  if (kptfile === undefined) return undefined;
  for (const [type, condition] of conditionsOf(kptfile)) {
    if (!isHealthyType(type) || condition.status !== 'True') continue;
    const wanted = wantedPackages(revision, requiredGates.includes(type));
    const present = healthCondition(type, targets, namespace, wanted, delivered);
    if (present.status !== 'True') return { type, message: present.message ?? '' };
    const verdict = record?.verdicts.find((one) => one.type === type);
    if (!sameValue(engineFacts(verdict?.external), engineFacts(present.external)))
      return {
        type,
        message: 'the engine of the target has changed since the condition was set; try again in a moment',
      };
  }
  return undefined;
}
