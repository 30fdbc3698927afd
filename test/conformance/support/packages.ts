import { join } from 'node:path';
import { beforeAll, inject } from 'vitest';
import { eventually } from '../../support/api/eventually.ts';
import { KubeApi } from '../../support/api/kube-api.ts';
import { bareWithCommit } from '../../support/git/write-objects.ts';
import { made, type Place } from './place.ts';

export const PORCH = 'porch.kpt.dev/v1alpha1';
export const REPOSITORY = 'packages';

/** Why packages cannot be tested on this server; undefined if they can. */
export async function whyNoPackages(): Promise<string | undefined> {
  const missing = inject('serverMissing');
  if (missing !== '') return missing;
  const api = await KubeApi.of(inject('kubeconfig'));
  const { status } = await api.get(`/apis/${PORCH}`);
  api.close();
  if (status !== 200) return `${PORCH} is not served`;
  return inject('gitRepository') === '' ? 'SLUICE_CONFORMANCE_GIT names no repository' : undefined;
}

/** Registers a Git repository in the namespace of a test file, before its tests: one of its own if this machine has the Git host. */
export function useRepository(place: Place): void {
  beforeAll(async () => {
    const path = place.path('config.porch.kpt.dev/v1alpha1/repositories');
    const spec = { type: 'git', git: { repo: repositoryOf(place), branch: 'main', directory: '/' } };
    const kind = { apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'Repository' };
    made(await place.api.post(path, { ...kind, metadata: { name: REPOSITORY }, spec }));
    await eventually(
      () => place.api.get(`${path}/${REPOSITORY}`),
      ({ text }) => /"type":"Ready"[^}]*"status":"True"|"status":"True"[^}]*"type":"Ready"/.test(text),
    );
  });
}

/** A package revision as a client writes it to create one. */
export function revisionBody(place: Place, packageName: string, workspaceName: string, task: object) {
  return {
    ...{ apiVersion: PORCH, kind: 'PackageRevision', metadata: { namespace: place.namespace } },
    spec: { packageName, workspaceName, repository: REPOSITORY, lifecycle: 'Draft', tasks: [task] },
  };
}

export const INIT = { type: 'init', init: { description: 'a package' } };

function repositoryOf({ namespace }: Place): string {
  const [folder, first] = [inject('gitFolder'), inject('gitRepository')];
  if (folder === '') return first;
  bareWithCommit(join(folder, `${namespace}.git`));
  return first.replace(/[^/]+$/, `${namespace}.git`);
}
