import type { GroupVersionKind } from '../../../resource/object/object.ts';
import type { Kind } from '../../../resource/schema/kind.ts';
import { structuralSchemaOf } from '../../../resource/schema/schema-of-kind.ts';
import type { StructuralSchema } from '../../../resource/schema/structural/structural-schema.ts';
import { patchTypesOf } from './patch-types.ts';

/** A sub-resource such as `status` or `approval`. */
export interface ServedSubResource {
  readonly name: string;
  readonly verbs: readonly string[];
  /** The kind that is read and written there, mostly the one that it belongs to. */
  readonly kind: GroupVersionKind;
  /** Of that kind, where it is not the kind that the sub-resource belongs to. */
  readonly schema?: () => StructuralSchema;
  /** Query parameters besides those that every request of the verb has. */
  readonly parameters?: readonly { readonly name: string; readonly description: string }[];
}

/** A kind whose objects are stored and can be listed. */
export interface ServedKind {
  readonly kind: Kind;
  readonly verbs: readonly string[];
  readonly subResources: readonly ServedSubResource[];
}

/** A review: created by a client, returned with its status, and not stored. */
export interface ServedReview extends GroupVersionKind {
  readonly plural: string;
  readonly namespaced: boolean;
  readonly schema: StructuralSchema;
}

/** Everything that is served. */
export interface Served {
  readonly kinds: readonly ServedKind[];
  readonly reviews: readonly ServedReview[];
}

/** The content of the documents about a resource, for kinds and reviews. */
export interface ServedResource extends GroupVersionKind {
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
  readonly subResources: readonly ServedSubResource[];
  /** Content types of patches. */
  readonly patchTypes: readonly string[];
  /** The schema of its objects. */
  schema(): StructuralSchema;
  /** The source of the resource; documents are cached as long as it is the same object. */
  readonly source: ServedKind['kind'] | ServedReview;
}

export interface ServedVersion {
  readonly group: string;
  readonly version: string;
  readonly resources: readonly ServedResource[];
}

export interface ServedGroup {
  /** Empty for the core group. */
  readonly name: string;
  /** The preferred one first. Never empty. */
  readonly versions: readonly ServedVersion[];
}

/**
 * Groups served resources by group and version. Groups and resources stay in the order in which they are served, so a
 * word that two groups share means the earlier one; versions begin with the most mature one.
 */
export function servedGroups(served: Served): ServedGroup[] {
  const groups = new Map<string, Map<string, ServedResource[]>>();
  for (const resource of [...served.kinds.map(kindResource), ...served.reviews.map(reviewResource)]) {
    const versions = groups.get(resource.group) ?? new Map<string, ServedResource[]>();
    groups.set(resource.group, versions);
    const resources = versions.get(resource.version);
    if (resources === undefined) versions.set(resource.version, [resource]);
    else resources.push(resource);
  }
  return [...groups].map(([name, versions]) => ({
    name,
    versions: [...versions]
      .map(([version, resources]) => ({ group: name, version, resources }))
      .sort((left, right) => compareVersions(left.version, right.version)),
  }));
}

function kindResource({ kind, verbs, ...rest }: ServedKind): ServedResource {
  const { group, version, plural, singular, shortNames, categories, namespaced } = kind;
  // A whole kind may be given where its names are enough; what is kept here is compared and written out.
  const subResources = rest.subResources.map((sub) => ({ ...sub, kind: namesOf(sub.kind) }));
  return {
    ...{ group, version, kind: kind.kind, plural, singular, shortNames, categories, namespaced },
    ...{ verbs, subResources, patchTypes: patchTypesOf(kind), schema: () => structuralSchemaOf(kind), source: kind },
  };
}

/** Group, version and kind of an object with further fields. */
export function namesOf({ group, version, kind }: GroupVersionKind): GroupVersionKind {
  return { group, version, kind };
}

function reviewResource(review: ServedReview): ServedResource {
  const { group, version, kind, plural, namespaced } = review;
  return {
    ...{ group, version, kind, plural, singular: kind.toLowerCase(), shortNames: [], categories: [], namespaced },
    ...{ verbs: ['create'], subResources: [], patchTypes: [], schema: () => review.schema, source: review },
  };
}

/** The order of Kubernetes: v10, v2, v1, v2beta1, v1beta2, v1alpha1, then what is no such version, by letter. */
export function compareVersions(left: string, right: string): number {
  const [a, b] = [maturityOf(left), maturityOf(right)];
  for (const [index, value] of a.entries()) {
    const difference = (b[index] ?? 0) - value;
    if (difference !== 0) return difference;
  }
  return left < right ? -1 : left > right ? 1 : 0;
}

const STAGES: Readonly<Record<string, number>> = { alpha: 1, beta: 2 };

function maturityOf(version: string): readonly number[] {
  const match = /^v(\d{1,9})(?:(alpha|beta)(\d{1,9}))?$/.exec(version);
  if (match === null) return [0, 0, 0];
  const [, major, stage, minor] = match;
  return [stage === undefined ? 3 : (STAGES[stage] ?? 0), Number(major), Number(minor ?? 0)];
}
