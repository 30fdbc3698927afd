import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadAll } from 'js-yaml';
import { APPLY_PATCH, KubeApi, type KubeObject } from '../../support/api/kube-api.ts';

const FOLDER = fileURLToPath(new URL('../../../deploy/crds/', import.meta.url));
const EXAMPLES = fileURLToPath(new URL('../../../examples/', import.meta.url));
export const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

type FileObject = KubeObject & { readonly file: string };

/** The definitions in `deploy/crds`. */
export function readDefinitions(): readonly FileObject[] {
  return readObjects(FOLDER);
}

/** The objects in the files of the examples. */
export function readExamples(): readonly FileObject[] {
  return readObjects(EXAMPLES);
}

/**
 * Installs the definitions in `deploy/crds`, as a cluster has them that Sluice extends, and those of the examples. Throws if the server
 * rejects one.
 */
export async function installDefinitions(kubeconfig: string): Promise<void> {
  const api = await KubeApi.of(kubeconfig);
  const ofExamples = readExamples().filter(({ kind }) => kind === 'CustomResourceDefinition');
  for (const { file, ...definition } of [...readDefinitions(), ...ofExamples]) {
    const path = `${DEFINITIONS}/${definition.metadata.name}?fieldManager=install&fieldValidation=Strict`;
    const { status, text } = await api.patch(path, definition, APPLY_PATCH);
    if (status >= 300) throw new Error(`the server rejects ${file}: ${text}`);
  }
  api.close();
}

/** The objects in the YAML files of a folder, with the names of the files. Bodies of patches are no objects. */
function readObjects(folder: string): readonly FileObject[] {
  return globSync('**/*.yaml', { cwd: folder })
    .sort()
    .flatMap((file) =>
      (loadAll(readFileSync(join(folder, file), 'utf8')) as KubeObject[]).map((one) => ({ ...one, file })),
    )
    .filter(({ apiVersion }) => apiVersion !== undefined);
}
