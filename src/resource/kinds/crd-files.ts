import { crdManifestText } from '../schema/crd-manifest.ts';
import { OBJECT_KINDS } from './index.ts';

/** File name to text of the CustomResourceDefinitions in `deploy/crds`: of all kinds that Kubernetes itself does not have. */
export function crdFiles(): ReadonlyMap<string, string> {
  const own = OBJECT_KINDS.filter(({ group }) => group !== '' && !group.endsWith('.k8s.io'));
  return new Map(own.map((kind) => [`${kind.plural}.${kind.group}.yaml`, crdManifestText(kind)]));
}
