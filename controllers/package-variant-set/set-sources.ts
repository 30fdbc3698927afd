import type { Informer } from '../../src/controller/informer.ts';
import type { InformerEvent } from '../../src/controller/informer-store.ts';
import { specChanged, specOrMetadataChanged } from '../../src/controller/predicates.ts';
import { type Source, type SourceContext, toObject, toOwner, watchKind } from '../../src/controller/source.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { type PackageVariant, packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import {
  type PackageVariantSet,
  packageVariantSetKind,
  SET_LABEL,
} from '../../src/resource/kinds/porch/package-variant-set.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { type KubernetesObject, keyOf, type ObjectKey } from '../../src/resource/object/object.ts';
import { sameValue } from '../../src/resource/object/same-value.ts';
import type { Kind } from '../../src/resource/schema/kind.ts';
import { labelSelector, matchesLabels } from '../../src/resource/selector/label-selector.ts';
import { isSelectable, type KindName, type SelectableKinds } from '../package-variant/selectable-kind.ts';
import type { ReadRepositories } from './read-repositories.ts';
import { namedKinds, selectionOf } from './unroll-targets.ts';

const UPSTREAM = 'package-variant-set-upstream';
const UPSTREAM_REPOSITORY = 'package-variant-set-upstream-repository';
const CLAIMING = 'package-variant-set-claiming';
const SELECTED = 'package-variant-set-selected';

/** Reason of `Stalled` while objects cannot be selected. */
export const NO_MATCHING_TARGETS = 'NoMatchingTargets';
/** Reason of `Ready` while a downstream package belongs to a variant of another object. */
export const DOWNSTREAM_CLAIMED = 'DownstreamClaimed';

export interface SetSourceOptions {
  readonly kinds: Pick<SelectableKinds, 'kindOf' | 'onChange'>;
  readonly store: Pick<RevisionStore, 'onArrival'>;
  readonly repositories: ReadRepositories;
}

/** A watch of the objects of a kind in a namespace, as sets name it. */
interface Followed {
  readonly named: KindName;
  readonly kind: Kind;
  readonly namespace: string;
  readonly end: () => void;
}

/**
 * Wakes for a set that changes, for the set of a variant, for the sets of an upstream package or of a repository that opens, for those that
 * select an object or read a repository, and for those whose downstream packages belong to others when a variant goes. Only names, labels and
 * annotations of objects count: expressions see nothing else.
 */
export function setSources(options: SetSourceOptions): Source<ObjectKey>[] {
  return [
    watchKind(packageVariantSetKind, { predicate: specOrMetadataChanged, map: toObject }),
    watchKind(packageVariantKind, { predicate: hasMoved, map: toOwner(packageVariantSetKind) }),
    { start: (context) => startSource(context, options) },
  ];
}

/** Whether what the set writes has changed. Not for the finalizer, which each variant gets. */
function hasMoved(event: InformerEvent<PackageVariant>): boolean {
  if (event.type !== 'update' || specChanged(event)) return true;
  const [before, after] = [event.old.metadata, event.object.metadata];
  return (
    before.labels?.[SET_LABEL] !== after.labels?.[SET_LABEL] ||
    !sameValue(before.ownerReferences, after.ownerReferences)
  );
}

function startSource(
  { informer, enqueue, release }: SourceContext<ObjectKey>,
  { kinds, store, repositories }: SetSourceOptions,
): () => void {
  const sets = informer(packageVariantSetKind);
  sets.addIndex(UPSTREAM, ({ metadata: { namespace }, spec: { upstream } }) => [
    `${namespace}/${upstream.repo}/${upstream.package}`,
  ]);
  sets.addIndex(UPSTREAM_REPOSITORY, ({ metadata, spec }) => [`${metadata.namespace}/${spec.upstream.repo}`]);
  sets.addIndex(SELECTED, (set) => new Set(selectionIds(set)));
  sets.addIndex(CLAIMING, ({ metadata: { namespace = '' }, status }) =>
    findCondition(status?.conditions, 'Ready')?.reason === DOWNSTREAM_CLAIMED ? [namespace] : [],
  );
  const followed = new Map<string, Followed>();
  const followedId = ({ apiVersion, kind }: KindName, namespace: string) =>
    JSON.stringify([apiVersion, kind, namespace]);
  const wake = (index: string, value: string) => {
    for (const set of sets.byIndex(index, value)) enqueue(keyOf(set));
  };
  /** Follows the kind of each target in the namespace of its set. */
  const follow = ({ metadata: { namespace = '' }, spec }: PackageVariantSet) => {
    let isNew = false;
    for (const target of spec.targets) {
      const selection = selectionOf(target);
      const kind = selection === undefined ? undefined : kinds.kindOf(selection);
      if (selection === undefined || kind === undefined || !isSelectable(kind)) continue;
      const id = followedId(selection, namespace);
      if (followed.has(id)) continue;
      isNew = true;
      const objects = informer(kind, { namespace });
      const end = objects.addHandler((event) => {
        if (!isVisibleChange(event)) return;
        for (const value of selectorsOf(event))
          for (const set of sets.byIndex(SELECTED, value)) if (selects(set, event)) enqueue(keyOf(set));
      });
      followed.set(id, { named: selection, kind, namespace, end });
      wakeOnceRead(objects, selection, namespace);
    }
    return isNew;
  };
  /** What the cluster refused to list before can be read now, also if it is nothing. */
  const wakeOnceRead = (objects: Informer, kind: KindName, namespace: string) => {
    const wake = () => {
      for (const set of sets.inNamespace(namespace))
        if (!ended && cannotSelect(set) && namesKind(set, kind)) enqueue(keyOf(set));
    };
    // It rejects when the informer is stopped.
    objects.whenSynced().then(wake, () => undefined);
  };
  const unfollow = (id: string) => {
    const one = followed.get(id);
    one?.end();
    followed.delete(id);
    if (one !== undefined) release(one.kind, { namespace: one.namespace });
  };
  /** Ends what followed kinds that are registered no longer. Returns these kinds. */
  const unfollowGone = () =>
    [...followed].flatMap(([id, { named }]) => {
      if (kinds.kindOf(named) !== undefined) return [];
      unfollow(id);
      return [named];
    });
  /** Ends what followed the kinds that a set has named, if no other set of its namespace names them. */
  const unfollowUnused = (before: PackageVariantSet) => {
    const { namespace = '' } = before.metadata;
    for (const kind of namedKinds(before))
      if (!sets.inNamespace(namespace).some((set) => namesKind(set, kind))) unfollow(followedId(kind, namespace));
  };
  let ended = false;
  // Its revisions may be none, or have been announced while it was not open yet.
  store.onArrival((id) => {
    if (!ended) wake(UPSTREAM_REPOSITORY, id);
  });
  const ends = [
    sets.addHandler((event) => {
      if (event.type !== 'delete') follow(event.object);
      if (event.type !== 'add' && specChanged(event))
        unfollowUnused(event.type === 'update' ? event.old : event.object);
    }),
    kinds.onChange(() => {
      const gone = unfollowGone();
      // A kind that arrives may have objects that sets select; without one that is gone, they cannot be carried out.
      for (const set of sets.list()) if (follow(set) || gone.some((kind) => namesKind(set, kind))) enqueue(keyOf(set));
    }),
    informer(packageRevisionKind).addHandler((event) => {
      const { metadata, spec } = event.object;
      // Nothing is made from drafts, which change frequently.
      const before = event.type === 'update' ? event.old.spec.lifecycle : undefined;
      if (!isPublished(spec.lifecycle) && !isPublished(before)) return;
      if (before !== spec.lifecycle || isVisibleChange(event))
        wake(UPSTREAM, `${metadata.namespace}/${spec.repository}/${spec.packageName}`);
    }),
    informer(packageVariantKind).addHandler((event) => {
      if (event.type === 'delete') wake(CLAIMING, event.object.metadata.namespace ?? '');
    }),
    informer(repositoryKind).addHandler((event) => {
      if (isVisibleChange(event)) for (const key of repositories.of(keyOf(event.object))) enqueue(key);
    }),
  ];
  return () => {
    ended = true;
    for (const end of [...ends, ...[...followed.values()].map((one) => one.end)]) end();
    followed.clear();
  };
}

function cannotSelect({ status }: PackageVariantSet): boolean {
  return findCondition(status?.conditions, 'Stalled')?.reason === NO_MATCHING_TARGETS;
}

function namesKind(set: PackageVariantSet, { apiVersion, kind }: KindName): boolean {
  return namedKinds(set).some((one) => one.apiVersion === apiVersion && one.kind === kind);
}

function isPublished(lifecycle: string | undefined): boolean {
  return lifecycle === 'Published' || lifecycle === 'DeletionProposed';
}

/** True if what expressions and selectors see differs. */
function isVisibleChange(event: InformerEvent<KubernetesObject>): boolean {
  if (event.type !== 'update') return true;
  const { old, object } = event;
  return (
    !sameValue(old.metadata.labels, object.metadata.labels) ||
    !sameValue(old.metadata.annotations, object.metadata.annotations)
  );
}

const selectorId = (object: { apiVersion: string; kind: string }, namespace: string | undefined, by: string) =>
  JSON.stringify([object.apiVersion, object.kind, namespace, by]);
const byLabel = ([key, value]: readonly [string, string]) => `label ${key}=${value}`;

/** A part of each selector of a set that an object has to match, as values of an index. */
function* selectionIds({ metadata: { namespace }, spec }: PackageVariantSet): Generator<string> {
  for (const target of spec.targets) {
    const selection = selectionOf(target);
    if (selection === undefined) continue;
    const { name, labels } = selection;
    const [label] = Object.entries(labels.matchLabels ?? {});
    const by = label === undefined ? 'any' : byLabel(label);
    yield selectorId(selection, namespace, name === undefined ? by : `name ${name}`);
  }
}

/** The values of that index under which the sets are that may select an object. */
function selectorsOf(event: InformerEvent<KubernetesObject>): Set<string> {
  const versions = event.type === 'update' ? [event.old, event.object] : [event.object];
  return new Set(
    versions.flatMap((object) => {
      const { name, namespace, labels = {} } = object.metadata;
      const parts = ['any', `name ${name}`, ...Object.entries(labels).map(byLabel)];
      return parts.map((part) => selectorId(object, namespace, part));
    }),
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
