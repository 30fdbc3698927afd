import type { FieldPath, Resource } from '../../../resource/resource.ts';
import { placesOf } from '../fields/field-spec.ts';
import { textAt } from '../fields/function-config.ts';
import { changeDependencies } from './depends-on.ts';
import { nameReferencesOf, type Target } from './name-references.ts';

/** The plural by which rules of roles name a kind. */
const PLURALS: Readonly<Record<string, string>> = {
  ConfigMap: 'configmaps',
  Secret: 'secrets',
  PersistentVolume: 'persistentvolumes',
};

/** Kinds without a namespace that contain references, or are referred to. */
const CLUSTER_SCOPED: ReadonlySet<string> = new Set([
  ...['ClusterRole', 'ClusterRoleBinding', 'PersistentVolume', 'StorageClass', 'PriorityClass', 'IngressClass'],
  ...['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding', 'Node'],
]);

/**
 * Gives resources new names, and writes these wherever other resources of the list refer to them in fields that Kubernetes knows, and in
 * `config.kubernetes.io/depends-on`.
 */
export function renameResources(items: readonly Resource[], names: ReadonlyMap<Resource, string>): void {
  if (names.size === 0) return;
  const renames = new Renames(names);
  for (const [item, name] of names) item.set(['metadata', 'name'], name);
  for (const item of items) {
    for (const { to, path } of nameReferencesOf(item)) {
      for (const place of placesOf(item, path)) rewrite(item, place, to, renames);
    }
    changeDependencies(item, (dependency) => {
      const name = renames.find(dependency, dependency.namespace, dependency.name);
      return name === undefined ? undefined : { ...dependency, name };
    });
  }
}

function rewrite(item: Resource, place: FieldPath, to: readonly Target[], renames: Renames): void {
  const name = textAt(item, place);
  if (name === undefined) return;
  const beside = (key: string) => (place.at(-1) === 'name' ? textAt(item, [...place.slice(0, -1), key]) : undefined);
  const kind = beside('kind');
  for (const target of to) {
    if ((kind !== undefined && kind !== target.kind) || !coversKind(item, place, target.kind)) continue;
    const anywhere = CLUSTER_SCOPED.has(item.kind) || CLUSTER_SCOPED.has(target.kind);
    const namespace = beside('namespace') ?? (anywhere ? undefined : (item.namespace ?? ''));
    const renamed = renames.find(target, namespace, name);
    if (renamed !== undefined) {
      item.set(place, renamed);
      return;
    }
  }
}

/** False for a name in a rule for another kind. */
function coversKind(item: Resource, place: FieldPath, kind: string): boolean {
  if (place[0] !== 'rules') return true;
  const resources = item.get([...place.slice(0, 2), 'resources']);
  return Array.isArray(resources) && resources.includes(PLURALS[kind]);
}

/** New names by old names. */
class Renames {
  readonly #exact = new Map<string, string>();
  /** For references without a namespace; undefined where several resources have the name. */
  readonly #anywhere = new Map<string, string | undefined>();

  constructor(names: ReadonlyMap<Resource, string>) {
    for (const [item, name] of names) {
      this.#exact.set(keyOf(item, namespaceKey(item.namespace ?? ''), item.name), name);
      const key = keyOf(item, '*', item.name);
      this.#anywhere.set(key, this.#anywhere.has(key) && this.#anywhere.get(key) !== name ? undefined : name);
    }
  }

  /** Without a namespace, the result may have any namespace. */
  find(target: Target, namespace: string | undefined, name: string): string | undefined {
    if (namespace === undefined) return this.#anywhere.get(keyOf(target, '*', name));
    return this.#exact.get(keyOf(target, namespaceKey(namespace), name));
  }
}

function namespaceKey(namespace: string): string {
  return namespace === 'default' ? '' : namespace;
}

function keyOf({ group, kind }: { group: string; kind: string }, namespace: string, name: string): string {
  return JSON.stringify([group, kind, namespace, name]);
}
