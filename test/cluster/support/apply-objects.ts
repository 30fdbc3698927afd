import { eventually } from '../../support/api/eventually.ts';
import type { KubeApi, KubeObject } from '../../support/api/kube-api.ts';
import { nameOf } from './render.ts';

interface Resource {
  readonly name: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

/**
 * Applies objects in their order, as `kubectl apply --server-side` does, without fields that the server does not know. Returns the warnings of the
 * server. Throws if it refuses an object.
 */
export async function applyObjects(api: KubeApi, objects: readonly KubeObject[]): Promise<readonly string[]> {
  const warnings: string[] = [];
  for (const object of objects) {
    const path = await pathOf(api, object);
    const answer = await api.apply(path, 'install', object, '&fieldValidation=Strict&force=true');
    if (answer.status >= 300) throw new Error(`the server refuses ${nameOf(object)}: ${answer.text}`);
    const warned = answer.headers.warning;
    if (warned !== undefined) warnings.push(`${nameOf(object)}: ${warned}`);
  }
  return warnings;
}

/** The path of an object, whose kind may have been defined just before. */
async function pathOf(api: KubeApi, { apiVersion, kind, metadata }: KubeObject): Promise<string> {
  const version = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const ofKind = (resources: readonly Resource[] = []) =>
    resources.find((one) => one.kind === kind && !one.name.includes('/'));
  const { body } = await eventually(
    () => api.get<{ readonly resources?: readonly Resource[] }>(version),
    (answer) => ofKind(answer.body.resources) !== undefined,
  );
  const { name, namespaced } = ofKind(body.resources) as Resource;
  const place = namespaced ? `/namespaces/${(metadata as { readonly namespace?: string }).namespace}` : '';
  return `${version}${place}/${name}/${metadata.name}`;
}
