import { isMap, isScalar, isSeq, type YAMLSeq } from 'yaml';
import { entriesOf, entryKey, type Part } from './yaml-document.ts';

/**
 * How entries of a list are identified: by fields (with the default of a missing one), by their own text, or by a function of the
 * entry.
 */
type ListKey = readonly { readonly field: string; readonly missing?: string }[] | 'text';

/**
 * Lists whose entries merge one by one, by the fields that lead to them (of any list in between the name alone). Those of the
 * Kubernetes API whose schema names merge keys; all other lists are replaced as a whole.
 */
const KUBERNETES_LISTS: readonly (readonly [path: string, key: ListKey])[] = [
  ['containers', [{ field: 'name' }]],
  ['initContainers', [{ field: 'name' }]],
  ['ephemeralContainers', [{ field: 'name' }]],
  ['volumes', [{ field: 'name' }]],
  ['imagePullSecrets', [{ field: 'name' }]],
  ['hostAliases', [{ field: 'ip' }]],
  ['topologySpreadConstraints', [{ field: 'topologyKey' }, { field: 'whenUnsatisfiable' }]],
  ['resourceClaims', [{ field: 'name' }]],
  ['env', [{ field: 'name' }]],
  ['volumeMounts', [{ field: 'mountPath' }]],
  ['volumeDevices', [{ field: 'devicePath' }]],
  ['containers.ports', [{ field: 'containerPort' }, { field: 'protocol', missing: 'TCP' }]],
  ['initContainers.ports', [{ field: 'containerPort' }, { field: 'protocol', missing: 'TCP' }]],
  ['spec.ports', [{ field: 'port' }, { field: 'protocol', missing: 'TCP' }]],
  ['webhooks', [{ field: 'name' }]],
  ['secrets', [{ field: 'name' }]],
  ['conditions', [{ field: 'type' }]],
  ['metadata.ownerReferences', [{ field: 'uid' }]],
  ['metadata.finalizers', 'text'],
];

const KPTFILE_LISTS: readonly (readonly [path: string, key: ListKey])[] = [
  ['pipeline.mutators', [{ field: 'name' }]],
  ['pipeline.validators', [{ field: 'name' }]],
  ['info.readinessGates', [{ field: 'conditionType' }]],
];

/** Returns which lists of one resource merge entry by entry. `path` names the fields from the root to the list. */
export type ListKeys = (path: readonly string[]) => ListKey | undefined;

/** For a resource of an API group; custom resources have no schema here, so only their metadata have such lists. */
export function listKeysOf(group: string, kind: string): ListKeys {
  if (group === 'kpt.dev' && kind === 'Kptfile') return (path) => find(KPTFILE_LISTS, path);
  const builtIn = !group.includes('.') || group.endsWith('.k8s.io');
  return (path) => (builtIn || path[0] === 'metadata' ? find(KUBERNETES_LISTS, path) : undefined);
}

function find(lists: typeof KUBERNETES_LISTS, path: readonly string[]): ListKey | undefined {
  const joined = path.join('.');
  return lists.find(([suffix]) => joined === suffix || joined.endsWith(`.${suffix}`))?.[1];
}

/** The entries of a list by their identity; undefined if one has none or two have the same. An absent list has none. */
export function keyedEntries(list: Part, key: ListKey): Map<string, Part> | undefined {
  const found = new Map<string, Part>();
  if (list === undefined) return found;
  if (!isSeq(list)) return undefined;
  const images = key === 'text' || key[0]?.field !== 'name' ? undefined : imagesOf(list);
  for (const item of list.items as Part[]) {
    const identity = identityOf(item, key) ?? (item === undefined ? undefined : images?.get(item));
    if (identity === undefined || found.has(identity)) return undefined;
    found.set(identity, item);
  }
  return found;
}

function identityOf(item: Part, key: ListKey): string | undefined {
  if (key === 'text') return isScalar(item) ? entryKey(item) : undefined;
  if (!isMap(item)) return undefined;
  const entries = entriesOf(item);
  const parts: string[] = [];
  for (const { field, missing } of key) {
    const value = entries.get(field);
    const text = isScalar(value) && typeof value.value === 'string' ? value.value : missing;
    if (text === undefined) return undefined;
    parts.push(text);
  }
  return JSON.stringify(parts);
}

/** Functions of a pipeline without names are distinguished by their images, as kpt does, if no entry of the list has a name. */
function imagesOf(list: YAMLSeq): ReadonlyMap<Part, string> | undefined {
  const found = new Map<Part, string>();
  for (const item of list.items as Part[]) {
    const entries = entriesOf(item);
    const image = entries.get('image');
    if (entries.has('name') || !isScalar(image) || typeof image.value !== 'string') return undefined;
    found.set(item, `image ${image.value.replace(/@.*$/, '').replace(/:[^:/]*$/, '')}`);
  }
  return found;
}
