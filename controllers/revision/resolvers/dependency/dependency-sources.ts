import { conditionsOf } from '../../../../kptfile-schema/index.ts';
import type { InformerEvent } from '../../../../src/controller/informer-store.ts';
import { specChanged } from '../../../../src/controller/predicates.ts';
import { type Source, triggerSource, watchKind } from '../../../../src/controller/source.ts';
import { isSameDelivery } from '../../../../src/delivery/delivered/delivered-package.ts';
import type { DeliveredPackages } from '../../../../src/delivery/delivered/delivered-packages.ts';
import { canonicalJson } from '../../../../src/foundation/text/canonical-json.ts';
import type { Clock } from '../../../../src/foundation/time/clock.ts';
import {
  isPublished,
  type PackageRevision,
  revisionId,
} from '../../../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../../../src/package/store/revision-store.ts';
import { packageVariantKind } from '../../../../src/resource/kinds/porch/package-variant.ts';
import { type Repository, repositoryKind } from '../../../../src/resource/kinds/porch/repository.ts';
import {
  type DeliveryTarget,
  deliveryTargetKind,
} from '../../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { DEFAULT_NAMESPACE, keyOf, type ObjectKey } from '../../../../src/resource/object/object.ts';
import { sameValue } from '../../../../src/resource/object/same-value.ts';
import { deliveredSource } from '../../../delivery/delivered-source.ts';
import { healthKey } from '../healthy/target-health.ts';
import { clustersNamedBy } from './cluster-packages.ts';
import { type ConsumerIndex, clusterInterest, packageInterest } from './consumer-index.ts';
import { isDependencyType } from './dependency-object.ts';

export interface DependencySourcesOptions {
  readonly store: Pick<RevisionStore, 'subscribe' | 'find'>;
  readonly targets: (namespace: string) => readonly DeliveryTarget[];
  readonly delivered: DeliveredPackages;
  readonly clock: Clock;
  readonly quietMs?: number;
}

/** Wake the consumers of a package, and no others, when something changes on which their conditions rest. */
export function dependencySources(
  { store, targets, delivered, clock, quietMs }: DependencySourcesOptions,
  consumers: ConsumerIndex,
  isConsumer: (row: PackageRevision) => boolean = isPending,
): readonly Source<ObjectKey>[] {
  /** The consumers of what a target delivers. */
  const ofTarget = ({ name, namespace = DEFAULT_NAMESPACE }: ObjectKey): ObjectKey[] => {
    const target = targets(namespace).find(({ metadata }) => metadata.name === name);
    const packages = target === undefined ? [] : delivered.of(target);
    const names = new Set(packages.map((one) => packageInterest(namespace, one.package)));
    return [...names].flatMap((one) => [...consumers.of(one)]);
  };
  return [
    triggerSource((enqueue) =>
      store.subscribe((changes) => {
        const woken = new Set<string>();
        for (const { before, after } of changes) {
          const row = after ?? before;
          if (row === undefined) continue;
          if (after === undefined || !isConsumer(after)) consumers.forget(revisionId(row));
          if (factsOf(before) === factsOf(after)) continue;
          woken.add(packageInterest(row.namespace, row.key.package));
          for (const cluster of clustersNamedBy(row)) woken.add(clusterInterest(row.namespace, cluster));
        }
        for (const name of woken) for (const key of consumers.of(name)) enqueue(key);
      }),
    ),
    // By the labels of a repository Dependency objects select providers, and targets packages that they are to deliver.
    watchKind(repositoryKind, {
      predicate: (event) => specChanged(event) || labelsChanged(event),
      map: ({ object: { metadata } }) => consumers.inNamespace(metadata.namespace ?? DEFAULT_NAMESPACE),
    }),
    // A variant can close or open a ring of packages.
    watchKind(packageVariantKind, {
      predicate: (event) => event.type !== 'update' || specChanged(event),
      map: ({ object: { metadata, spec } }) =>
        consumers.of(packageInterest(metadata.namespace ?? DEFAULT_NAMESPACE, spec.downstream.package)),
    }),
    // Targets that select a package and do not deliver it keep it from being deployed.
    watchKind(deliveryTargetKind, {
      predicate: specChanged,
      map: ({ object: { metadata } }) => consumers.inNamespace(metadata.namespace ?? DEFAULT_NAMESPACE),
    }),
    watchKind(deliveryTargetKind, {
      predicate: (event) => event.type !== 'update' || healthKey(event.object) !== healthKey(event.old),
      map: ({ object }) => ofTarget(keyOf(object)),
    }),
    deliveredSource({
      ...{ clock, map: ofTarget },
      ...(quietMs === undefined ? {} : { quietMs }),
      predicate: (event) => event.type !== 'update' || !isSameDelivery(event.object, event.old),
    }),
  ];
}

function labelsChanged(event: InformerEvent<Repository>): boolean {
  return event.type === 'update' && !sameValue(event.old.metadata.labels, event.object.metadata.labels);
}

function isPending({ lifecycle }: PackageRevision): boolean {
  return lifecycle === 'Draft' || lifecycle === 'Proposed';
}

/** What consumers see of a revision: all of a publication, and of a draft only that it exists and what it depends on. */
function factsOf(row: PackageRevision | undefined): string {
  if (row === undefined) return '';
  if (isPublished(row)) return row.etag;
  const conditions = row.kptfile === undefined ? [] : [...conditionsOf(row.kptfile)];
  return canonicalJson([
    row.lifecycle,
    row.revision,
    conditions.filter(([type]) => isDependencyType(type)).map(([type, { status, reason }]) => [type, status, reason]),
    (row.record?.verdicts ?? []).filter(({ type }) => isDependencyType(type)).map(({ external }) => external ?? []),
  ]);
}
