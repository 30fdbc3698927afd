import { fluxObjects } from '../../../../src/cli/target/target-init-objects.ts';
import type { KubeApi, KubeObject } from '../../../support/api/kube-api.ts';
import { applyObjects } from '../apply-objects.ts';
import type { Engine, FollowOptions, PackageReport } from './engine.ts';
import { FLUX_NAMESPACE } from './flux.ts';
import type { DeliveredPlace } from './gitops-world.ts';

const SOURCES = `/apis/source.toolkit.fluxcd.io/v1/namespaces/${FLUX_NAMESPACE}/gitrepositories`;
const KUSTOMIZATIONS = `/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/${FLUX_NAMESPACE}/kustomizations`;
const REQUESTED = 'reconcile.fluxcd.io/requestedAt';

/** One GitRepository and one Kustomization for all packages of a place. */
export class FluxEngine implements Engine {
  readonly name = 'Flux';
  readonly #cluster: KubeApi;
  #requests = 0;

  constructor(cluster: KubeApi) {
    this.#cluster = cluster;
  }

  async follow(place: DeliveredPlace, { spec = {}, pollInterval = '1h', verify }: FollowOptions = {}): Promise<void> {
    const objects = objectsOf(place);
    const [source, kustomization] = objects;
    Object.assign(source?.spec ?? {}, { interval: pollInterval });
    Object.assign(kustomization?.spec ?? {}, { retryInterval: '2s', timeout: '30s' }, spec);
    if (verify === undefined) return void (await applyObjects(this.#cluster, objects));
    const name = `${place.name}-keys`;
    Object.assign(source?.spec ?? {}, { verify: { mode: 'HEAD', secretRef: { name } } });
    const keys = {
      ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: FLUX_NAMESPACE } },
      stringData: { 'sluice.asc': verify.publicKey },
    };
    await applyObjects(this.#cluster, [keys as unknown as KubeObject, ...objects]);
  }

  async unfollow({ name }: DeliveredPlace): Promise<void> {
    await this.#cluster.delete(`${KUSTOMIZATIONS}/${name}`);
  }

  async trigger({ name }: DeliveredPlace): Promise<void> {
    this.#requests += 1;
    const annotations = { [REQUESTED]: `${new Date().toISOString()} ${this.#requests}` };
    const { status, text } = await this.#cluster.patch(`${SOURCES}/${name}`, { metadata: { annotations } });
    if (status !== 200) throw new Error(text);
  }

  /** All packages of a place share the report of its Kustomization. */
  async report({ name }: DeliveredPlace): Promise<PackageReport> {
    const { body: source } = await this.#cluster.get<FluxObject>(`${SOURCES}/${name}`);
    const { body: object } = await this.#cluster.get<FluxObject>(`${KUSTOMIZATIONS}/${name}`);
    const { conditions = [], lastAppliedRevision, observedGeneration } = object.status ?? {};
    const ready = conditions.find(({ type }) => type === 'Ready');
    const sourceReady = source.status?.conditions?.find(({ type }) => type === 'Ready');
    const problem = sourceReady?.status === 'False' ? sourceReady : ready;
    return {
      seen: commitOf(source.status?.artifact?.revision),
      synced: commitOf(lastAppliedRevision),
      healthy: ready?.status === 'True' && observedGeneration === object.metadata.generation,
      message: `${problem?.reason}: ${problem?.message}`,
      object,
    };
  }
}

type SpecObject = KubeObject & { readonly spec: object };

/** What `sluice target init flux` prints. */
function objectsOf({ name, url, directory }: DeliveredPlace): readonly SpecObject[] {
  const place = {
    ...{ name, repo: url, branch: 'main', directory, namespace: FLUX_NAMESPACE },
    ...{ prune: true, keepsEmptyFolders: true, isFlat: false },
  };
  return fluxObjects(place, { dependsOn: [] }).map(({ object }) => object as unknown as SpecObject);
}

type FluxObject = KubeObject & {
  readonly metadata: KubeObject['metadata'] & { readonly generation: number };
  readonly status?: {
    readonly artifact?: { readonly revision: string };
    readonly lastAppliedRevision?: string;
    readonly observedGeneration?: number;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason: string;
      readonly message: string;
    }[];
  };
};

/** The commit in `main@sha1:<commit>`. */
function commitOf(revision = ''): string | undefined {
  return /@sha1:([0-9a-f]{40})$/.exec(revision)?.[1];
}
