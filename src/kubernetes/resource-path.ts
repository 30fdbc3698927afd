import { SluiceError } from '../foundation/sluice-error.ts';
import { DEFAULT_NAMESPACE, type ObjectKey } from '../resource/object/object.ts';
import type { Kind } from '../resource/schema/kind.ts';

/** `/api/v1`, `/apis/porch.kpt.dev/v1alpha1`: the discovery document of a version of a group. */
export function versionPath(kind: Pick<Kind, 'group' | 'version'>): string {
  return kind.group === '' ? `/api/${segment(kind.version)}` : `/apis/${segment(kind.group)}/${segment(kind.version)}`;
}

/** The path of the objects of a kind, in one namespace or, without one, in all of them. */
export function collectionPath(kind: Kind, namespace: string | undefined): string {
  const scope = kind.namespaced && namespace !== undefined ? `/namespaces/${segment(namespace)}` : '';
  return `${versionPath(kind)}${scope}/${segment(kind.plural)}`;
}

/** The path of one object or of a sub-resource of it. A namespaced object without a namespace is in `default`. */
export function objectPath(kind: Kind, key: ObjectKey, subResource?: string): string {
  const path = `${collectionPath(kind, key.namespace || DEFAULT_NAMESPACE)}/${segment(key.name)}`;
  return subResource === undefined ? path : `${path}/${segment(subResource)}`;
}

/** Kubernetes forbids these names since they would change the path. */
function segment(text: string): string {
  if (text === '' || text === '.' || text === '..' || /[/%\0]/.test(text))
    throw new SluiceError('InvalidInput', `${JSON.stringify(text)} cannot be part of the address of an object`);
  return encodeURIComponent(text);
}
