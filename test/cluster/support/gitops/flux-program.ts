import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadAll } from 'js-yaml';
import type { KubeObject } from '../../../support/api/kube-api.ts';
import { whyMissing } from '../../../support/go-program.ts';
import { GoModule } from '../go-module.ts';

const CONTROLLER = 'config/crd/bases/kustomize.toolkit.fluxcd.io_kustomizations.yaml';
const SOURCES = 'config/crd/bases/source.toolkit.fluxcd.io_';

/** The definitions of the kinds that kustomize-controller reads. Returns the reason where their modules cannot be fetched. */
export async function fluxDefinitions(): Promise<readonly KubeObject[] | { readonly missing: string }> {
  try {
    const controller = await new GoModule('.').dependencyFolder('github.com/fluxcd/kustomize-controller');
    const sources = await new GoModule('flux').dependencyFolder('github.com/fluxcd/source-controller');
    const files = [
      join(controller, CONTROLLER),
      ...['gitrepositories', 'ocirepositories', 'buckets', 'externalartifacts'].map((name) =>
        join(sources, `${SOURCES}${name}.yaml`),
      ),
    ];
    const texts = await Promise.all(files.map((file) => readFile(file, 'utf8')));
    return texts.flatMap((text) => loadAll(text) as KubeObject[]);
  } catch (error) {
    const missing = whyMissing(error);
    if (missing === undefined) throw error;
    return { missing };
  }
}
