import { PackageRefused } from '../refusal.ts';
import {
  isMapping,
  isNull,
  isScalar,
  isSequence,
  type Mapping,
  textAt,
  type Value,
  valueAt,
} from '../yaml/yaml-value.ts';
import { hasSopsBlock, isEncryptedText } from './sops.ts';

/** An object of a package that may be delivered. */
export interface ManifestObject {
  readonly value: Mapping;
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace: string | undefined;
  /** `<file>:<line>` of its beginning. */
  readonly place: string;
}

/** Groups whose objects configure kpt and its functions and are never meant for a cluster. */
const TOOL_GROUPS = new Set(['kpt.dev', 'fn.kpt.dev']);
const MAX_LIST_DEPTH = 8;

/**
 * The objects in one document: one, the items of a list kind, or none for a document that is no Kubernetes object or must not reach
 * clusters. `budget` limits the number of objects of a package, nested lists included. Throws PackageRefused.
 */
export function* objectsIn(value: Value, path: string, budget: { left: number }, depth = 0): Generator<ManifestObject> {
  if (!isMapping(value)) return;
  const place = `${path}:${value.line}`;
  const apiVersion = textAt(value, 'apiVersion');
  const kind = textAt(value, 'kind');
  if (apiVersion === undefined || kind === undefined) {
    const missing = apiVersion === undefined ? 'apiVersion' : 'kind';
    const isMeant = (apiVersion !== undefined || kind !== undefined) && valueAt(value, 'metadata') !== undefined;
    if (isMeant) throw new PackageRefused('InvalidManifest', `${place}: the object has no ${missing}`);
    return;
  }
  if (budget.left-- <= 0) throw new PackageRefused('TooLarge', `${place}: too many objects in one package`);

  const items = valueAt(value, 'items');
  if (kind.endsWith('List') && (isSequence(items) || items === undefined || isNull(items))) {
    if (depth >= MAX_LIST_DEPTH) throw new PackageRefused('TooLarge', `${place}: lists nested too deeply`);
    if (isLocal(value)) return;
    for (const item of isSequence(items) ? items : []) {
      if (!isMapping(item) || textAt(item, 'apiVersion') === undefined || textAt(item, 'kind') === undefined)
        throw new PackageRefused('InvalidManifest', `${place}: an item of the list has no apiVersion or kind`);
      yield* objectsIn(item, path, budget, depth + 1);
    }
    return;
  }
  if (isLocal(value) || TOOL_GROUPS.has(groupOf(apiVersion))) return;
  const name = textAt(value, 'metadata', 'name');
  if (kind === 'ConfigMap' && name === 'kptfile.kpt.dev') return;
  if (name === undefined || name === '')
    throw new PackageRefused('InvalidManifest', `${place}: ${kind} has no metadata.name`);
  yield { value, apiVersion, kind, name, namespace: textAt(value, 'metadata', 'namespace'), place };
}

function isLocal(value: Mapping): boolean {
  return textAt(value, 'metadata', 'annotations', 'config.kubernetes.io/local-config') === 'true';
}

export function groupOf(apiVersion: string): string {
  return apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '';
}

/** The identity of an object in a cluster. */
export function identityOf(object: ManifestObject): string {
  return [groupOf(object.apiVersion), object.kind, object.namespace ?? 'default', object.name].join('\0');
}

/** The name of an object in messages. */
export function describeObject({ kind, namespace, name }: ManifestObject): string {
  return namespace === undefined ? `${kind} ${name}` : `${kind} ${namespace}/${name}`;
}

/** True for a Secret with readable content: it is not empty, and not every value is encrypted by sops. */
export function isOpenSecret({ apiVersion, kind, value }: ManifestObject): boolean {
  if (kind !== 'Secret' || groupOf(apiVersion) !== '') return false;
  const encrypted = hasSopsBlock(value);
  for (const field of ['data', 'stringData']) {
    const content = valueAt(value, field);
    if (content === undefined || isNull(content)) continue;
    if (!isMapping(content)) return true;
    for (const { value: entry } of content.entries.values()) {
      if (isNull(entry)) continue;
      // Sops does not encrypt an empty value.
      if (isScalar(entry) && entry.text === '') continue;
      if (!encrypted || !isScalar(entry) || !isEncryptedText(entry.text)) return true;
    }
  }
  return false;
}
