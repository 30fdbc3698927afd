import type { InformerEvent } from '../../src/controller/informer-store.ts';
import { specChanged, specOrMetadataChanged } from '../../src/controller/predicates.ts';
import { type Source, type SourceContext, toObject, toOwner, watchKind } from '../../src/controller/source.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { type PackageVariantSet, packageVariantSetKind } from '../../src/resource/kinds/porch/package-variant-set.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { type KubernetesObject, keyOf, type ObjectKey, type Stored } from '../../src/resource/object/object.ts';
import { sameValue } from '../../src/resource/object/same-value.ts';
import { labelSelector, matchesLabels } from '../../src/resource/selector/label-selector.ts';
import type { Registry } from '../../src/resource/storage/registry.ts';
import { selectionOf } from './unroll-targets.ts';

const UPSTREAM = 'package-variant-set-upstream';

/**
 * Wakes for a set that changes, for the set of a variant, for the sets of an upstream package, for those that select an object, and for
 * those that report problems when a variant or repository comes or goes. Only names, labels and annotations of objects count:
 * expressions see nothing else.
 */
export function setSources(kinds: Pick<Registry, 'kindOf' | 'onChange'>): Source<ObjectKey>[] {
  return [
    watchKind(packageVariantSetKind, { predicate: specOrMetadataChanged, map: toObject }),
    // Not for the finalizer, which each variant gets.
    watchKind(packageVariantKind, { predicate: specChanged, map: toOwner(packageVariantSetKind) }),
    { start: (context) => startSource(context, kinds) },
  ];
}

function startSource(
  { informer, enqueue }: SourceContext<ObjectKey>,
  kinds: Pick<Registry, 'kindOf' | 'onChange'>,
): () => void {
  const sets = informer(packageVariantSetKind);
  sets.addIndex(UPSTREAM, ({ metadata: { namespace }, spec: { upstream } }) => [
    `${namespace}/${upstream.repo}/${upstream.package}`,
  ]);
  const followed = new Map<string, () => void>();
  const wake = (namespace: string, matches: (set: Stored<PackageVariantSet>) => boolean) => {
    for (const set of sets.inNamespace(namespace)) if (matches(set)) enqueue(keyOf(set));
  };
  /** Follows the kind of each target in the namespace of its set. */
  const follow = ({ metadata: { namespace = '' }, spec }: PackageVariantSet) => {
    let isNew = false;
    for (const target of spec.targets) {
      const selection = selectionOf(target);
      const kind = selection === undefined ? undefined : kinds.kindOf(selection);
      if (selection === undefined || kind === undefined || !kind.namespaced) continue;
      const id = JSON.stringify([selection.apiVersion, selection.kind, namespace]);
      if (followed.has(id)) continue;
      isNew = true;
      followed.set(
        id,
        informer(kind, { namespace }).addHandler((event) => {
          if (isVisibleChange(event)) wake(namespace, (set) => selects(set, event));
        }),
      );
    }
    return isNew;
  };
  const reportsProblem = ({ status }: PackageVariantSet) =>
    findCondition(status?.conditions, 'Ready')?.status === 'False';
  const ends = [
    sets.addHandler((event) => {
      if (event.type !== 'delete') follow(event.object);
    }),
    kinds.onChange(() => {
      // A kind that arrives may have objects that sets select.
      for (const set of sets.list()) if (follow(set)) enqueue(keyOf(set));
    }),
    informer(packageRevisionKind).addHandler((event) => {
      const { metadata, spec } = event.object;
      if (spec.lifecycle !== 'Published' || !isVisibleChange(event, spec.lifecycle)) return;
      const place = `${metadata.namespace}/${spec.repository}/${spec.packageName}`;
      for (const set of sets.byIndex(UPSTREAM, place)) enqueue(keyOf(set));
    }),
    informer(packageVariantKind).addHandler((event) => {
      if (event.type === 'delete') wake(event.object.metadata.namespace ?? '', reportsProblem);
    }),
    informer(repositoryKind).addHandler((event) => {
      // Templates can read each repository of the namespace.
      if (isVisibleChange(event)) wake(event.object.metadata.namespace ?? '', () => true);
    }),
  ];
  return () => {
    for (const end of [...ends, ...followed.values()]) end();
    followed.clear();
  };
}

/** True if what expressions and selectors see differs. */
function isVisibleChange(event: InformerEvent<KubernetesObject>, lifecycle?: string): boolean {
  if (event.type !== 'update') return true;
  const { old, object } = event;
  const before = (old as { readonly spec?: { readonly lifecycle?: string } }).spec?.lifecycle;
  return (
    (lifecycle !== undefined && lifecycle !== before) ||
    !sameValue(old.metadata.labels, object.metadata.labels) ||
    !sameValue(old.metadata.annotations, object.metadata.annotations)
  );
}

function selects({ spec }: PackageVariantSet, event: InformerEvent<KubernetesObject>): boolean {
  const versions = event.type === 'update' ? [event.old, event.object] : [event.object];
  return spec.targets.some((target) => {
    const selection = selectionOf(target);
    if (selection === undefined) return false;
    const { apiVersion, kind, name, labels } = selection;
    const selector = labelSelector(labels);
    return versions.some(
      (object) =>
        object.apiVersion === apiVersion &&
        object.kind === kind &&
        (name === undefined || name === object.metadata.name) &&
        matchesLabels(selector, object.metadata.labels),
    );
  });
}
