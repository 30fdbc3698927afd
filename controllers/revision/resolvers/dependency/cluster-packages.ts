import type { KrmObject } from '../../../../src/package/model/krm/krm.ts';
import { isRecord } from '../../../../src/package/model/krm/krm.ts';
import {
  isPublished,
  type PackageRevision,
  revisionId,
} from '../../../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../../../src/package/store/revision-store.ts';
import { annotationsOf } from './dependency-object.ts';
import { packageId } from './select-providers.ts';

/** Of an object that gets the content of another one: it creates nothing. */
const INJECTION_ANNOTATION = 'kpt.dev/config-injection';
/** Of a package that creates a cluster and has another name: the name of the cluster. */
export const CREATES_CLUSTER_ANNOTATION = 'sluice.dev/creates-cluster';
/** Of a workload that does not wait for its cluster: `"false"`. */
export const WAIT_ANNOTATION = 'sluice.dev/wait-for-cluster';
const MAX_CANDIDATES = 20;

/** False for a package whose Kptfile says that it does not wait for its cluster. */
export function waitsForCluster({ kptfile }: PackageRevision): boolean {
  return kptfile?.metadata?.annotations?.[WAIT_ANNOTATION] !== 'false';
}

/** The cluster of a workload: that of the WorkloadCluster which was injected into it. */
export function clusterOf(objects: readonly KrmObject[], revision: PackageRevision): string | undefined {
  if (!waitsForCluster(revision)) return undefined;
  const injected = objects.find(
    (object) => isWorkloadCluster(object) && annotationsOf(object)[INJECTION_ANNOTATION] !== undefined,
  );
  return injected === undefined ? undefined : clusterName(injected);
}

function isWorkloadCluster({ apiVersion, kind }: KrmObject): boolean {
  return kind === 'WorkloadCluster' && apiVersion.startsWith('infra.nephio.org/');
}

function clusterName({ value, name }: KrmObject): string {
  const { spec } = value;
  const text = isRecord(spec) ? spec.clusterName : undefined;
  return typeof text === 'string' && text !== '' ? text : name;
}

/** True for an object that stands for the cluster in the package that creates it. */
function creates(object: KrmObject, cluster: string): boolean {
  if (annotationsOf(object)[INJECTION_ANNOTATION] !== undefined) return false;
  if (isWorkloadCluster(object)) return clusterName(object) === cluster;
  return object.kind === 'Cluster' && object.apiVersion.startsWith('cluster.x-k8s.io/') && object.name === cluster;
}

/** The clusters that a package may create, by its path and its annotation. */
export function clustersNamedBy({ key, kptfile }: PackageRevision): string[] {
  const own = key.package.slice(key.package.lastIndexOf('/') + 1);
  const named = kptfile?.metadata?.annotations?.[CREATES_CLUSTER_ANNOTATION];
  return named === undefined || named === own ? [own] : [own, named];
}

/**
 * Packages by the clusters that they may create, from names alone: only the contents of those that fit are read. It is built at the first
 * use, and follows the store.
 */
export class ClusterPackages {
  readonly #store: Pick<RevisionStore, 'list' | 'content' | 'subscribe'>;
  /** Packages by `<namespace>/<cluster>`. */
  #byCluster: Map<string, Set<string>> | undefined;

  constructor(store: Pick<RevisionStore, 'list' | 'content' | 'subscribe'>) {
    this.#store = store;
  }

  /** Packages that may create a cluster, without that of `consumer`. */
  candidates(cluster: string, consumer: PackageRevision): string[] {
    const found = this.#packages().get(`${consumer.namespace}/${cluster}`) ?? [];
    return [...found]
      .filter((id) => id !== packageId(consumer))
      .sort()
      .slice(0, MAX_CANDIDATES);
  }

  /** The revisions that create a cluster: of each package the latest published one, or else a draft. */
  async creators(cluster: string, consumer: PackageRevision): Promise<PackageRevision[]> {
    const found: PackageRevision[] = [];
    for (const id of this.candidates(cluster, consumer)) {
      const at = id.indexOf('/');
      const rows = this.#store.list({
        repository: `${consumer.namespace}/${id.slice(0, at)}`,
        package: id.slice(at + 1),
      });
      const row = rows.find((one) => one.latest && isPublished(one)) ?? rows.find((one) => one.revision === 0);
      if (row === undefined) continue;
      const content = await this.#store.content(revisionId(row));
      if (content.objects().some((object) => creates(object, cluster))) found.push(row);
    }
    return found;
  }

  #packages(): Map<string, Set<string>> {
    if (this.#byCluster !== undefined) return this.#byCluster;
    const byCluster = new Map<string, Set<string>>();
    this.#byCluster = byCluster;
    const add = (row: PackageRevision) => {
      for (const cluster of clustersNamedBy(row)) {
        const key = `${row.namespace}/${cluster}`;
        byCluster.set(key, (byCluster.get(key) ?? new Set()).add(packageId(row)));
      }
    };
    this.#store.subscribe((changes) => {
      for (const { before, after } of changes) {
        if (after !== undefined) add(after);
        else if (before !== undefined) this.#removeUnused(before, byCluster);
      }
    });
    for (const row of this.#store.list()) add(row);
    return byCluster;
  }

  #removeUnused(row: PackageRevision, byCluster: Map<string, Set<string>>): void {
    const repository = `${row.namespace}/${row.key.repository}`;
    if (this.#store.list({ repository, package: row.key.package }).length > 0) return;
    for (const cluster of clustersNamedBy(row)) {
      const key = `${row.namespace}/${cluster}`;
      byCluster.get(key)?.delete(packageId(row));
      if (byCluster.get(key)?.size === 0) byCluster.delete(key);
    }
  }
}
