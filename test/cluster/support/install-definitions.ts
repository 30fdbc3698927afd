import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { load } from 'js-yaml';
import { APPLY_PATCH, KubeApi, type KubeObject } from '../../support/api/kube-api.ts';

const FOLDER = fileURLToPath(new URL('../../../deploy/crds/', import.meta.url));
export const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

/** The definitions in `deploy/crds`. */
export async function readDefinitions(): Promise<readonly KubeObject[]> {
  const files = (await readdir(FOLDER)).filter((file) => file.endsWith('.yaml'));
  return Promise.all(files.map(async (file) => load(await readFile(`${FOLDER}/${file}`, 'utf8')) as KubeObject));
}

/** Installs the definitions in `deploy/crds`, as a cluster has them that Sluice extends. Throws if the server rejects one. */
export async function installDefinitions(kubeconfig: string): Promise<void> {
  const api = await KubeApi.of(kubeconfig);
  for (const definition of await readDefinitions()) {
    const path = `${DEFINITIONS}/${definition.metadata.name}?fieldManager=install&fieldValidation=Strict`;
    const { status, text } = await api.patch(path, definition, APPLY_PATCH);
    if (status >= 300) throw new Error(`the server rejects deploy/crds/${definition.metadata.name}.yaml: ${text}`);
  }
  api.close();
}
