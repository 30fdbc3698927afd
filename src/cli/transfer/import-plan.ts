import type { KubernetesObject, ObjectMeta } from '../../resource/object/object.ts';
import { sameValue } from '../../resource/object/same-value.ts';

/** Maximum number of fields that are reported for one object. */
const MAX_FIELDS = 5;

/**
 * Paths at which the object of a file differs from the one that exists, both in portable form; without values, since Secrets are among
 * them. Labels, annotations and finalizers that only the existing object has are no difference: controllers add them.
 */
export function differences(given: KubernetesObject, existing: KubernetesObject): readonly string[] {
  const { metadata: ours, ...content } = given;
  const { metadata: theirs, ...other } = existing;
  const found = [...metadataDifferences(ours, theirs), ...paths(content, other, [])];
  return found.length <= MAX_FIELDS ? found : [...found.slice(0, MAX_FIELDS), `and ${found.length - MAX_FIELDS} more`];
}

function metadataDifferences(ours: ObjectMeta, theirs: ObjectMeta): string[] {
  const maps = (['labels', 'annotations'] as const).flatMap((field) =>
    Object.entries(ours[field] ?? {})
      .filter(([key, value]) => theirs[field]?.[key] !== value)
      .map(([key]) => `metadata.${field}[${key}]`),
  );
  const finalizers = (ours.finalizers ?? []).filter((each) => theirs.finalizers?.includes(each) !== true);
  const owners = sameValue(identities(ours), identities(theirs));
  return [
    ...maps,
    ...(finalizers.length === 0 ? [] : ['metadata.finalizers']),
    ...(owners ? [] : ['metadata.ownerReferences']),
  ];
}

/** Another server gives the same owner another uid. */
function identities({ ownerReferences = [] }: ObjectMeta): string[] {
  return ownerReferences.map(({ apiVersion, kind, name }) => `${apiVersion} ${kind} ${name}`).sort();
}

function paths(ours: unknown, theirs: unknown, path: readonly string[]): string[] {
  if (sameValue(ours, theirs)) return [];
  if (!isMap(ours) || !isMap(theirs)) return [path.join('.')];
  const keys = new Set([...Object.keys(ours), ...Object.keys(theirs)]);
  return [...keys].sort().flatMap((key) => paths(own(ours, key), own(theirs, key), [...path, key]));
}

const own = (map: Readonly<Record<string, unknown>>, key: string) => (Object.hasOwn(map, key) ? map[key] : undefined);

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The existing object with the content of the given one; labels, annotations and finalizers of other writers stay. */
export function replacement<T extends KubernetesObject>(given: KubernetesObject, existing: T): T {
  const { labels, annotations, finalizers = [], ownerReferences } = given.metadata;
  const { metadata } = existing;
  return {
    ...given,
    metadata: {
      ...metadata,
      labels: { ...metadata.labels, ...labels },
      annotations: { ...metadata.annotations, ...annotations },
      finalizers: [...new Set([...(metadata.finalizers ?? []), ...finalizers])],
      ownerReferences: ownerReferences ?? [],
    },
  } as unknown as T;
}
