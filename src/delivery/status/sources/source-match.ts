import { comparableAddress } from '../../../git/open/repository-address.ts';
import type { DeliveryTarget } from '../../../resource/kinds/sluice/delivery/delivery-target.ts';
import type { KubernetesObject } from '../../../resource/object/object.ts';
import { isWithin, sourcePath } from '../engine-values.ts';
import type { ApplicationSource } from '../interpret-application.ts';
import type { ArtifactFilter } from '../left-out-folders.ts';

type TargetGit = DeliveryTarget['spec']['git'];
type Engine = NonNullable<DeliveryTarget['spec']['engine']>;

/** True for two addresses of one repository, whatever their protocols: engines often read over another one than Sluice writes. */
export function isSameRepository(one: string, other: string): boolean {
  return withoutProtocol(one) === withoutProtocol(other);
}

function withoutProtocol(address: string): string {
  let comparable: string;
  try {
    comparable = comparableAddress(address);
  } catch {
    // What an engine names need not be an address that Sluice reads.
    comparable = address;
  }
  return comparable.replace(/^(?:https?|ssh):\/\//, '').replace(/^([^/:]+):(?:22|80|443)(?=\/)/, '$1');
}

function isBranch(revision: string | undefined, branch: string): boolean {
  return revision === undefined || ['', 'HEAD', branch, `refs/heads/${branch}`].includes(revision);
}

/**
 * False only where a target names objects in a cluster that it has a kubeconfig for. In the cluster of Sluice, objects are read and patched
 * with the rights of Sluice, so that those of other repositories must not be.
 */
export function comparesSources({ name, selector, kubeconfigSecretRef }: Engine): boolean {
  return kubeconfigSecretRef === undefined || (name === undefined && selector === undefined);
}

/** True for a source of an Application that is the repository and branch of a target. */
export function isSourceOf({ repo, branch }: TargetGit, { repoURL, targetRevision }: ApplicationSource): boolean {
  return repoURL !== undefined && isSameRepository(repoURL, repo) && isBranch(targetRevision, branch);
}

/** True for a folder inside the directory of a target, or above it. */
export function concernsDirectory({ directory }: TargetGit, path: string | undefined): boolean {
  const [own, other] = [sourcePath(directory), sourcePath(path)];
  return own !== undefined && other !== undefined && (isWithin(other, own) || isWithin(own, other));
}

/** True for a GitRepository of Flux that is the repository and branch of a target. */
export function isGitRepositoryOf({ repo, branch }: TargetGit, { spec }: KubernetesObject): boolean {
  const { url, ref } = (spec ?? {}) as { readonly url?: unknown; readonly ref?: Record<string, unknown> };
  if (typeof url !== 'string' || !isSameRepository(url, repo)) return false;
  const { branch: named, name, commit, tag, semver } = ref ?? {};
  if ([commit, tag, semver].some((one) => one !== undefined && one !== '')) return false;
  if (typeof name === 'string' && name !== '') return name === `refs/heads/${branch}`;
  // Flux's default.
  return (typeof named === 'string' && named !== '' ? named : 'master') === branch;
}

/** What a GitRepository leaves out by its spec; a field of another form than expected counts as absent. */
export function artifactFilterOf(repository: KubernetesObject | undefined): ArtifactFilter {
  const { ignore, sparseCheckout } = (repository?.spec ?? {}) as Readonly<Record<string, unknown>>;
  const directories = Array.isArray(sparseCheckout) ? sparseCheckout.filter((one) => typeof one === 'string') : [];
  return {
    ...(typeof ignore === 'string' ? { ignore } : {}),
    ...(directories.length === 0 ? {} : { directories }),
  };
}
