import { canonicalJson, digest } from '../../../../foundation/text/canonical-json.ts';
import type { DeliveryTarget } from './delivery-target.ts';

type Engine = NonNullable<DeliveryTarget['spec']['engine']>;

/** Types of conditions on the health of a target: this prefix with the name of the target. */
export const HEALTHY_PREFIX = 'sluice.dev/Healthy.';

/** Where the objects of an engine usually are. */
const DEFAULT_NAMESPACES = { ArgoCD: 'argocd', Flux: 'flux-system' } as const;

export function healthyType(target: string): string {
  return `${HEALTHY_PREFIX}${target}`;
}

/** The settings that decide which reports are read; not those of its trigger. */
export function engineSettings(engine: Engine | undefined): Omit<Engine, 'trigger'> | null {
  if (engine === undefined) return null;
  const { trigger: _, ...settings } = engine;
  return settings;
}

/** Names the engine of a target; the digest is that of all settings that decide which reports are read, and what they are compared with. */
export function describeEngine(engine: Engine, { repo, branch, directory }: DeliveryTarget['spec']['git']): string {
  const { type, name, kubeconfigSecretRef } = engine;
  const namespace = engineNamespace(engine);
  const place = namespace === undefined ? '' : ` ${namespace}/${name ?? '*'}`;
  const cluster = kubeconfigSecretRef === undefined ? '' : `, kubeconfig of Secret ${kubeconfigSecretRef.name}`;
  const settings = canonicalJson([engineSettings(engine), repo, branch, directory]);
  return `${type}${place}${cluster} (settings ${digest(settings).slice(0, 12)})`;
}

/** The namespace of the objects of an engine in a cluster; undefined for commit statuses. */
export function engineNamespace({ type, namespace }: Pick<Engine, 'type' | 'namespace'>): string | undefined {
  return type === 'CommitStatus' ? undefined : (namespace ?? DEFAULT_NAMESPACES[type]);
}
