import { crdManifestText } from '../schema/crd-manifest.ts';
import { OBJECT_KINDS } from './index.ts';

/**
 * File name to text of what `deploy/crds` contains: the CustomResourceDefinitions of all kinds that Kubernetes itself does not have, and the list
 * of them for kustomize.
 */
export function crdFiles(): ReadonlyMap<string, string> {
  const definitions = definitionFiles();
  const names = [...definitions.keys()].sort();
  const list = ['# Written by "npm run crds"; do not edit.', 'resources:', ...names.map((name) => `  - ${name}`), ''];
  return definitions.set('kustomization.yaml', list.join('\n'));
}

function definitionFiles(): Map<string, string> {
  const own = OBJECT_KINDS.filter(({ group }) => group !== '' && !group.endsWith('.k8s.io'));
  return new Map(own.map((kind) => [`${kind.plural}.${kind.group}.yaml`, crdManifestText(kind)]));
}
