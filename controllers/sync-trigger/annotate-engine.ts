import { sourcePath } from '../../src/delivery/status/engine-values.ts';
import { sourcesOf } from '../../src/delivery/status/interpret-application.ts';
import {
  applicationKind,
  applicationSetKind,
  gitRepositoryKind,
  kustomizationKind,
} from '../../src/delivery/status/sources/engine-kinds.ts';
import {
  comparesSources,
  concernsDirectory,
  isGitRepositoryOf,
  isSourceOf,
} from '../../src/delivery/status/sources/source-match.ts';
import { mapLimited } from '../../src/foundation/concurrency/map-limited.ts';
import { isSluiceError, SluiceError } from '../../src/foundation/sluice-error.ts';
import type { Client } from '../../src/resource/client/client.ts';
import type { DeliveryTarget } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { engineNamespace } from '../../src/resource/kinds/sluice/delivery/engine-settings.ts';
import { type KubernetesObject, keyOf, keyText, type ObjectKey } from '../../src/resource/object/object.ts';
import type { Kind } from '../../src/resource/schema/kind.ts';

/** Objects of an engine that one push refreshes. */
const MAX_OBJECTS = 100;
const MAX_CONCURRENT_PATCHES = 8;

interface Refresh {
  readonly kind: Kind<KubernetesObject>;
  /** Number of objects of the target, of which `keys` are to be refreshed. */
  readonly found: number;
  readonly keys: readonly ObjectKey[];
  readonly annotations: Readonly<Record<string, string>>;
}

/**
 * Sets the annotations by which Argo CD refreshes Applications and ApplicationSets, and Flux fetches GitRepositories, whose Kustomizations
 * follow. Of Applications only those of `folders` are refreshed, if the caller knows which ones changed. Throws NotFound where the engine has no object of the target, else what the client throws.
 */
export async function annotateEngine(
  { spec: { engine, git } }: Pick<DeliveryTarget, 'spec'>,
  client: Client,
  now: number,
  signal: AbortSignal,
  folders?: ReadonlySet<string>,
): Promise<void> {
  if (engine === undefined || engine.type === 'CommitStatus')
    throw new SluiceError(
      'InvalidInput',
      'spec.engine.trigger.type Annotation needs spec.engine.type ArgoCD or Flux; use Webhook',
    );
  const { name, selector } = engine;
  const namespace = engineNamespace(engine) ?? '';
  const isCompared = comparesSources(engine);
  const list = async (kind: Kind<KubernetesObject>, labelSelector: typeof selector) =>
    (await client.list(kind, { namespace, signal, ...(labelSelector === undefined ? {} : { labelSelector }) })).items;
  /** The objects that the target names, or all. */
  const named = async (kind: Kind<KubernetesObject>) =>
    name === undefined ? list(kind, selector) : [await client.get(kind, { namespace, name }, { signal })];

  const ofArgo = async (): Promise<readonly Refresh[]> => {
    const annotations = { 'argocd.argoproj.io/refresh': 'normal' };
    if (name !== undefined && !isCompared)
      return [{ kind: applicationKind, found: 1, keys: [{ namespace, name }], annotations }];
    const own = (await named(applicationKind)).filter(
      (one) =>
        !isCompared || sourcesOf(one).some((source) => isSourceOf(git, source) && concernsDirectory(git, source.path)),
    );
    if (name !== undefined) return [{ kind: applicationKind, found: own.length, keys: own.map(keyOf), annotations }];
    const isChanged = folders === undefined ? () => true : concerns(folders);
    // A new package has no Application yet, and a removed one must lose its own.
    const sets = (await list(applicationSetKind, undefined).catch(noneIfUndefined)).filter((one) =>
      isGeneratorOf(git, one),
    );
    return [
      {
        kind: applicationSetKind,
        found: sets.length,
        keys: sets.map(keyOf),
        annotations: { 'argocd.argoproj.io/application-set-refresh': 'true' },
      },
      { kind: applicationKind, found: own.length, keys: own.filter(isChanged).map(keyOf), annotations },
    ];
  };
  const ofFlux = async (): Promise<readonly Refresh[]> => {
    const annotations = { 'reconcile.fluxcd.io/requestedAt': new Date(now).toISOString() };
    const repositories = isCompared
      ? (await list(gitRepositoryKind, undefined)).filter((one) => isGitRepositoryOf(git, one)).map(keyOf)
      : undefined;
    const refreshOf = (keys: readonly ObjectKey[]) => [
      { kind: gitRepositoryKind, found: keys.length, keys, annotations },
    ];
    if (repositories !== undefined && name === undefined && selector === undefined) return refreshOf(repositories);
    const own = repositories && new Set(repositories.map(keyText));
    return refreshOf(sourceKeys(await named(kustomizationKind)).filter((key) => own?.has(keyText(key)) !== false));
  };

  const refreshes = engine.type === 'ArgoCD' ? await ofArgo() : await ofFlux();
  if (refreshes.every(({ found }) => found === 0)) {
    const kinds = refreshes.map(({ kind }) => kind.plural).join(' and no ');
    throw new SluiceError(
      'NotFound',
      `namespace ${namespace} of the engine has no ${kinds} of the target; check spec.engine`,
    );
  }
  for (const { kind, keys, annotations } of refreshes)
    await mapLimited(keys.slice(0, MAX_OBJECTS), MAX_CONCURRENT_PATCHES, (key) =>
      client.patch(kind, key, { metadata: { annotations } }, { signal }),
    );
}

/** Selects Applications of these folders, or of folders above them. */
function concerns(folders: ReadonlySet<string>): (application: KubernetesObject) => boolean {
  const paths = new Set(['']);
  for (const folder of folders)
    for (let path = folder; path !== ''; path = path.slice(0, Math.max(0, path.lastIndexOf('/')))) paths.add(path);
  return (application) => sourcesOf(application).some(({ path }) => paths.has(sourcePath(path) ?? ''));
}

/** Argo CD can be installed without ApplicationSets. */
function noneIfUndefined(error: unknown): readonly KubernetesObject[] {
  if (isSluiceError(error, 'NotFound')) return [];
  throw error;
}

/** True for an ApplicationSet with a Git generator that reads the repository and branch of a target. */
function isGeneratorOf(
  git: DeliveryTarget['spec']['git'],
  set: KubernetesObject & { readonly spec?: unknown },
): boolean {
  const { sources } = set.spec as { readonly sources: readonly Parameters<typeof isSourceOf>[1][] };
  return sources.some((source) => isSourceOf(git, source));
}

/** The GitRepositories that Kustomizations name. */
function sourceKeys(kustomizations: readonly KubernetesObject[]): ObjectKey[] {
  const keys = new Map<string, ObjectKey>();
  for (const { metadata, spec } of kustomizations as readonly (KubernetesObject & { readonly spec?: unknown })[]) {
    const { sourceRef } = (spec ?? {}) as { readonly sourceRef?: Readonly<Record<string, unknown>> };
    const { kind, name, namespace = metadata.namespace } = sourceRef ?? {};
    if (kind !== 'GitRepository' || typeof name !== 'string' || typeof namespace !== 'string') continue;
    keys.set(keyText({ namespace, name }), { namespace, name });
  }
  return [...keys.values()];
}
