import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buildOnce, userCacheFolder } from '../../support/built-once.ts';
import { whyMissing } from '../../support/go-program.ts';
import { GoModule } from './go-module.ts';

const MODULE = new GoModule('.');
/** Without it, kube-apiserver reports the version `v0.0.0-master`. */
const KUBERNETES_VERSION = 'v1.36.3';

/** The programs with their packages, in the order in which they are built. */
const PACKAGES = {
  etcd: 'go.etcd.io/etcd/server/v3',
  'kube-apiserver': 'k8s.io/kubernetes/cmd/kube-apiserver',
  'kube-controller-manager': 'k8s.io/kubernetes/cmd/kube-controller-manager',
  kwok: 'sigs.k8s.io/kwok/cmd/kwok',
  kustomize: 'sigs.k8s.io/kustomize/kustomize/v5',
  'kustomize-controller': 'github.com/fluxcd/kustomize-controller',
} as const;

type ProgramName = keyof typeof PACKAGES;

export interface ClusterPrograms {
  readonly folder: string;
  /** The path of a program. */
  pathOf(name: ProgramName): string;
  /** A file with the stages of nodes and pods that kwok plays. */
  readonly stages: string;
}

/**
 * Builds the programs of `test/cluster/tools`, once for each user of this machine and each version of their dependencies. `report` receives
 * a line for each step, with its duration. Returns the reason where Go or the modules are not available; throws with the output of the
 * compiler if it fails.
 */
export async function clusterPrograms(
  report: (line: string) => void,
): Promise<ClusterPrograms | { readonly missing: string }> {
  const folder = join(userCacheFolder('sluice-cluster'), await MODULE.hash());
  const pathOf = (name: ProgramName) => join(folder, name);
  const stages = join(folder, 'stages.yaml');
  try {
    for (const [name, target] of Object.entries(PACKAGES))
      await buildOnce(join(folder, name), (unfinished) =>
        MODULE.build(name, target, unfinished, report, versionFlags()),
      );
    await buildOnce(stages, async (unfinished) => writeFile(unfinished, await kwokStages()));
    return { folder, pathOf, stages };
  } catch (error) {
    const missing = whyMissing(error);
    if (missing === undefined) throw error;
    return { missing };
  }
}

/** The documents with which its module makes nodes and pods ready at once. Without stages, kwok does not start. */
async function kwokStages(): Promise<string> {
  const module = await MODULE.dependencyFolder('sigs.k8s.io/kwok');
  const documents: string[] = [];
  for (const stage of ['node/fast', 'node/heartbeat', 'pod/fast']) {
    const folder = join(module, 'kustomize/stage', stage);
    const files = (await readdir(folder)).filter((name) => name.endsWith('.yaml') && name !== 'kustomization.yaml');
    for (const file of files) documents.push(await readFile(join(folder, file), 'utf8'));
  }
  return documents.join('\n---\n');
}

/** Kubernetes reports its version from variables that the linker sets. */
function versionFlags(): string {
  const version = 'k8s.io/component-base/version';
  const [, major = '', minor = ''] = /^v(\d+)\.(\d+)/.exec(KUBERNETES_VERSION) ?? [];
  const variables = { gitVersion: KUBERNETES_VERSION, gitMajor: major, gitMinor: minor };
  return Object.entries(variables)
    .map(([variable, value]) => `-X ${version}.${variable}=${value}`)
    .join(' ');
}
