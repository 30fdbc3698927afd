import { readFile } from 'node:fs/promises';
import type { KubeObject } from '../../../support/api/kube-api.ts';
import { applyObjects } from '../apply-objects.ts';
import { ARGOCD_HOOK_TOKEN, ARGOCD_NAMESPACE, type ArgoCd } from './argocd.ts';
import type { FollowOptions } from './engine.ts';
import { FLUX_NAMESPACE } from './flux.ts';
import type { DeliveredPlace } from './gitops-world.ts';
import { RECEIVER_TOKEN, type ReceiverStandIn } from './receiver-stand-in.ts';
import type { Scenario } from './scenario.ts';

/** How Sluice reaches an engine. */
export interface TriggerSetup {
  readonly type: 'ArgoCD' | 'Flux';
  /** Namespace of the objects of the engine. */
  readonly namespace: string;
  /** Rights in that namespace that docs/delivery.md lists for read-back and the annotation. */
  readonly rules: readonly object[];
  /** The address that pushes to a place are posted to, and the token of their signature. */
  hook(place: string): { readonly url: string; readonly token: string };
  /** True if the webhook also starts the sync of a package that is new in the target. */
  readonly hookFindsNewPackages: boolean;
}

export function argoCdTriggers(engine: ArgoCd): TriggerSetup {
  return {
    ...{ type: 'ArgoCD', namespace: ARGOCD_NAMESPACE },
    rules: [
      {
        ...{ apiGroups: ['argoproj.io'], resources: ['applications', 'applicationsets'] },
        verbs: ['list', 'watch', 'patch'],
      },
    ],
    hook: () => ({ url: `${engine.url}/api/webhook`, token: ARGOCD_HOOK_TOKEN }),
    hookFindsNewPackages: false,
  };
}

export function fluxTriggers(receiver: ReceiverStandIn): TriggerSetup {
  return {
    ...{ type: 'Flux', namespace: FLUX_NAMESPACE },
    rules: [
      { apiGroups: ['kustomize.toolkit.fluxcd.io'], resources: ['kustomizations'], verbs: ['list', 'watch'] },
      {
        ...{ apiGroups: ['source.toolkit.fluxcd.io'], resources: ['gitrepositories'] },
        verbs: ['list', 'watch', 'patch'],
      },
    ],
    hook: (place) => ({ url: receiver.urlOf(place), token: RECEIVER_TOKEN }),
    hookFindsNewPackages: true,
  };
}

interface ReadTarget {
  readonly name: string;
  readonly packages: readonly string[];
  /** Default: the engine polls. */
  readonly trigger?: 'Annotation' | 'Webhook' | undefined;
  readonly follow?: FollowOptions;
}

/** Creates a target whose engine Sluice reads and triggers as a user with the rights that the documentation lists. */
export async function readTarget(
  site: Scenario,
  setup: TriggerSetup,
  { name, packages, trigger, follow }: ReadTarget,
): Promise<DeliveredPlace> {
  const { type, namespace, hook } = setup;
  const { url, token } = hook(name);
  const data = { token, kubeconfig: await kubeconfigOf(site, name, setup) };
  await site.world.create('Secret', { metadata: { name }, stringData: data });
  const settings =
    trigger === undefined
      ? {}
      : { trigger: trigger === 'Webhook' ? { type: trigger, url, secretRef: { name } } : { type: trigger } };
  const engine = { type, namespace, kubeconfigSecretRef: { name, key: 'kubeconfig' }, ...settings };
  return site.target(name, packages, { spec: { engine }, ...(follow === undefined ? {} : { follow }) });
}

/** True if the status of a target says that this commit is healthy. */
export function isHealthy(status: unknown, commit: string): boolean {
  const { deployment } = status as {
    readonly deployment?: { readonly commit?: string; readonly healthy: { status: string } };
  };
  return deployment?.commit === commit && deployment.healthy.status === 'True';
}

/** Returns the text of the kubeconfig of a new user. */
async function kubeconfigOf(site: Scenario, name: string, { namespace, rules }: TriggerSetup): Promise<string> {
  const { cluster, plane } = site.world;
  const metadata = { name, namespace };
  const apiGroup = 'rbac.authorization.k8s.io';
  const objects = [
    { apiVersion: `${apiGroup}/v1`, kind: 'Role', metadata, rules },
    {
      ...{ apiVersion: `${apiGroup}/v1`, kind: 'RoleBinding', metadata },
      roleRef: { apiGroup, kind: 'Role', name },
      subjects: [{ apiGroup, kind: 'User', name }],
    },
  ];
  await applyObjects(cluster, objects as unknown as readonly KubeObject[]);
  return readFile(await plane.userKubeconfig(name), 'utf8');
}
