import { argoCdObjects } from '../../../../src/cli/target/target-init-objects.ts';
import type { KubeApi, KubeObject } from '../../../support/api/kube-api.ts';
import { applyObjects } from '../apply-objects.ts';
import { ARGOCD_NAMESPACE } from './argocd.ts';
import type { Engine, FollowOptions, PackageReport } from './engine.ts';
import type { DeliveredPlace } from './gitops-world.ts';

const API = `/apis/argoproj.io/v1alpha1/namespaces/${ARGOCD_NAMESPACE}`;
const REFRESH = 'argocd.argoproj.io/refresh';
const REFRESH_SET = 'argocd.argoproj.io/application-set-refresh';

/** One ApplicationSet for all packages of a place, which makes an Application of each folder that has a kustomization. */
export class ArgoCdEngine implements Engine {
  readonly name = 'Argo CD';
  readonly #cluster: KubeApi;

  constructor(cluster: KubeApi) {
    this.#cluster = cluster;
  }

  async follow(place: DeliveredPlace, { spec = {}, verify }: FollowOptions = {}): Promise<void> {
    const { name, url } = place;
    const set = setOf(place);
    Object.assign(set.spec.template.spec, spec);
    if (verify === undefined) return void (await applyObjects(this.#cluster, [set]));
    // A template, because the generator of 3.2 verifies the commit before it has fetched the repository, and fails.
    set.spec.template.spec.project = `{{ "${name}" }}`;
    const project = {
      ...{ apiVersion: 'argoproj.io/v1alpha1', kind: 'AppProject', metadata: { name, namespace: ARGOCD_NAMESPACE } },
      spec: {
        sourceRepos: [url],
        destinations: [{ namespace: '*', server: '*' }],
        clusterResourceWhitelist: [{ group: '*', kind: '*' }],
        signatureKeys: [{ keyID: verify.keyId }],
      },
    };
    await applyObjects(this.#cluster, [project as unknown as KubeObject, set]);
  }

  async unfollow({ name }: DeliveredPlace): Promise<void> {
    await this.#cluster.delete(`${API}/applicationsets/${name}`);
  }

  async trigger({ name }: DeliveredPlace): Promise<void> {
    const annotate = (path: string, annotation: string, value: string) =>
      this.#cluster.patch(path, { metadata: { annotations: { [annotation]: value } } });
    const { status, text } = await annotate(`${API}/applicationsets/${name}`, REFRESH_SET, 'true');
    // It may be deleted.
    if (status !== 200 && status !== 404) throw new Error(text);
    for (const { metadata } of await this.#applications(name))
      await annotate(`${API}/applications/${metadata.name}`, REFRESH, 'normal');
  }

  async report({ name, directory }: DeliveredPlace, packagePath: string): Promise<PackageReport> {
    const path = directory === '' ? packagePath : `${directory}/${packagePath}`;
    const object = (await this.#applications(name)).find(({ spec }) => spec.source.path === path);
    const { sync, health, operationState, conditions = [], reconciledAt = '' } = object?.status ?? {};
    const { phase, finishedAt = '', message = '', syncResult } = operationState ?? {};
    const failures = (syncResult?.resources ?? []).filter(({ status }) => status === 'SyncFailed');
    // A report of health that is older than the last operation is of the objects before it.
    const isRecent = reconciledAt >= finishedAt && phase !== 'Running';
    return {
      seen: sync?.revision,
      synced: sync?.status === 'Synced' && isRecent ? sync.revision : undefined,
      healthy: health?.status === 'Healthy' && isRecent && conditions.length === 0,
      message: [
        `${phase}: ${message}`,
        ...failures.map((each) => `${each.kind} ${each.name}: ${each.message}`),
        ...conditions.map((each) => `${each.type}: ${each.message}`),
      ].join('; '),
      object,
    };
  }

  async #applications(set: string): Promise<readonly Application[]> {
    const { body } = await this.#cluster.list(`${API}/applications`);
    return (body.items as readonly Application[]).filter(({ metadata: { ownerReferences = [] } }) =>
      ownerReferences.some((owner) => owner.name === set),
    );
  }
}

interface ApplicationSet extends KubeObject {
  readonly spec: {
    readonly template: {
      readonly spec: {
        project: string;
        readonly destination: { namespace?: string };
        readonly syncPolicy: { readonly retry: { backoff: object } };
      };
    };
  };
}

/** What `sluice target init argocd` prints, with settings of a user: a default namespace, and earlier retries. */
function setOf({ name, url, directory }: DeliveredPlace): ApplicationSet {
  const place = {
    ...{ name, repo: url, branch: 'main', directory, namespace: ARGOCD_NAMESPACE },
    ...{ prune: true, keepsEmptyFolders: true, isFlat: false },
  };
  const [printed] = argoCdObjects(place, { project: 'default', destination: 'https://kubernetes.default.svc' });
  const set = printed?.object as unknown as ApplicationSet;
  const { spec } = set.spec.template;
  spec.destination.namespace = 'default';
  spec.syncPolicy.retry.backoff = { duration: '1s', factor: 2, maxDuration: '3s' };
  return set;
}

type Application = KubeObject & {
  readonly metadata: KubeObject['metadata'] & { readonly ownerReferences?: readonly { readonly name: string }[] };
  readonly spec: { readonly source: { readonly path: string } };
  readonly status?: {
    readonly sync?: { readonly status: string; readonly revision?: string };
    readonly health?: { readonly status: string };
    readonly reconciledAt?: string;
    readonly operationState?: {
      readonly phase: string;
      readonly message?: string;
      readonly finishedAt?: string;
      readonly syncResult?: { readonly resources?: readonly SyncedResource[] };
    };
    readonly conditions?: readonly { readonly type: string; readonly message: string }[];
  };
};

interface SyncedResource {
  readonly kind: string;
  readonly name: string;
  readonly status?: string;
  readonly message?: string;
}
