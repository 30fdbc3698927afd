/** The place that an engine reads, and how it syncs it. */
export interface SyncedPlace {
  /** Name of the target, and of the printed objects. */
  readonly name: string;
  /** Address of the repository, as the cluster reaches it. */
  readonly repo: string;
  readonly branch: string;
  /** Without slashes at its ends; empty for the root. */
  readonly directory: string;
  /** Namespace of the engine. */
  readonly namespace: string;
  /** Whether objects that a package no longer has are deleted from the cluster. */
  readonly prune: boolean;
  /** True if the target keeps an empty folder of a removed package. */
  readonly keepsEmptyFolders: boolean;
  /** True if packages are delivered as they are, so that they can have kustomizations inside, or none: each folder of the directory is one. */
  readonly isFlat: boolean;
}

export interface ArgoCdOptions {
  readonly project: string;
  /** URL of the API server of the cluster, or its name in Argo CD. */
  readonly destination: string;
  readonly wave?: number;
}

export interface FluxOptions {
  /** Secret with the credentials of the repository. */
  readonly secret?: string;
  /** Kustomizations that must be ready first. */
  readonly dependsOn: readonly string[];
  /** Secret with the kubeconfig of another cluster. */
  readonly clusterSecret?: string;
}

/** An object with the comment that is printed above it. */
export interface PrintedObject {
  readonly comment: readonly string[];
  readonly object: Readonly<Record<string, unknown>>;
}

/** One ApplicationSet that makes an Application of each package folder. */
export function argoCdObjects(place: SyncedPlace, { project, destination, wave }: ArgoCdOptions): PrintedObject[] {
  const { name, repo, branch, directory, namespace, prune, keepsEmptyFolders, isFlat } = place;
  const prefix = directory === '' ? '' : `${directory}/`;
  const source = { repoURL: repo, revision: branch };
  const git = isFlat
    ? { ...source, directories: [{ path: `${prefix}*` }] }
    : { ...source, files: [{ path: `${prefix}**/kustomization.yaml` }] };
  const annotations = wave === undefined ? {} : { annotations: { 'argocd.argoproj.io/sync-wave': String(wave) } };
  const comment = [
    `Argo CD syncs every package of target ${name}: an Application for each folder below ${directory === '' ? 'the root' : directory}.`,
    `Credentials: a Secret in namespace ${namespace} with the label argocd.argoproj.io/secret-type: repository,`,
    'or "argocd repo add". An object that needs the definition of another package is retried until it is there.',
    'Namespaces are set in the manifests; destination.namespace would only fill in missing ones.',
    isFlat
      ? 'Each folder of the directory is a package; folders further below have no Application.'
      : 'Folders are found by their kustomization.yaml, at any depth.',
    prune
      ? 'Objects that are no longer in Git are deleted; an Application that is removed deletes its objects.'
      : 'Objects that are no longer in Git stay in the cluster (--no-prune).',
  ];
  const spec = {
    ...{ goTemplate: true, goTemplateOptions: ['missingkey=error'], generators: [{ git }] },
    syncPolicy: {
      applicationsSync: prune ? 'sync' : 'create-update',
      preserveResourcesOnDeletion: !prune,
    },
    template: {
      metadata: {
        name: applicationName(name, prefix),
        labels: { 'sluice.dev/target': name },
        annotations: {
          // Without it, fields that the cluster adds to some kinds count as differences for ever.
          'argocd.argoproj.io/compare-options': 'ServerSideDiff=true',
          // A commit that does not change the folder costs no rendering.
          'argocd.argoproj.io/manifest-generate-paths': '.',
        },
        ...(prune ? { finalizers: ['resources-finalizer.argocd.argoproj.io'] } : {}),
      },
      spec: {
        project,
        source: { repoURL: repo, targetRevision: branch, path: '{{ .path.path }}' },
        destination: destination.includes('://') ? { server: destination } : { name: destination },
        syncPolicy: {
          automated: { prune, selfHeal: true, allowEmpty: keepsEmptyFolders },
          retry: { limit: -1, refresh: true, backoff: { duration: '5s', factor: 2, maxDuration: '3m' } },
          syncOptions: ['ServerSideApply=true', 'SkipDryRunOnMissingResource=true', 'ApplyOutOfSyncOnly=true'],
        },
      },
    },
  };
  const metadata = { name, namespace, ...annotations };
  return [{ comment, object: { apiVersion: 'argoproj.io/v1alpha1', kind: 'ApplicationSet', metadata, spec } }];
}

/**
 * The template of the name of an Application: the path of the package where that is a name, else with a hash of the path. Without it
 * `net/upf` and `net-upf` would have one name, and Argo CD syncs none of a set with a name twice. A path that ends as if it had a hash
 * gets one too, so that it is not the name of another path.
 */
function applicationName(name: string, prefix: string): string {
  const path = `.path.path${prefix === '' ? '' : ` | trimPrefix "${prefix}"`}`;
  return [
    `{{ $path := ${path} }}`,
    // A name has 253 characters at most, and ends in a letter or digit.
    '{{ $name := $path | replace "/" "-" | normalize | trunc 180 | trimAll "-." }}',
    `${name}-{{ $name }}`,
    '{{ if or (ne $name $path) (regexMatch "-[0-9a-f]{8}$" $path) }}-{{ $path | sha256sum | trunc 8 }}{{ end }}',
  ].join('');
}

/** A GitRepository, and one Kustomization for all packages. */
export function fluxObjects(place: SyncedPlace, { secret, dependsOn, clusterSecret }: FluxOptions): PrintedObject[] {
  const { name, repo, branch, directory, namespace, prune } = place;
  const metadata = { name, namespace };
  const source = {
    apiVersion: 'source.toolkit.fluxcd.io/v1',
    ...{ kind: 'GitRepository', metadata },
    spec: {
      ...{ url: repo, ref: { branch }, interval: '1m', timeout: '60s' },
      ...(secret === undefined ? {} : { secretRef: { name: secret } }),
      ...(directory === '' ? {} : { sparseCheckout: [directory] }),
    },
  };
  const kustomization = {
    apiVersion: 'kustomize.toolkit.fluxcd.io/v1',
    ...{ kind: 'Kustomization', metadata },
    spec: {
      ...(dependsOn.length === 0 ? {} : { dependsOn: dependsOn.map((one) => ({ name: one })) }),
      sourceRef: { kind: 'GitRepository', name },
      path: `./${directory}`,
      ...{ prune, wait: true, force: false },
      ...{ interval: '10m', retryInterval: '30s', timeout: '5m' },
      ...(clusterSecret === undefined ? {} : { kubeConfig: { secretRef: { name: clusterSecret } } }),
    },
  };
  const sourceComment = [
    `Flux reads target ${name} every minute; a Receiver or the annotation reconcile.fluxcd.io/requestedAt starts it sooner.`,
    secret === undefined
      ? 'No credentials: add spec.secretRef, or print it with --secret.'
      : `Credentials: Secret ${secret} in namespace ${namespace}, with username and password, or identity and known_hosts.`,
  ];
  const comment = [
    'One Kustomization for all packages: definitions and Namespaces are applied first, so packages need no order among',
    'each other. dependsOn names Kustomizations with what they need from elsewhere (--depends-on).',
    'The path has to exist: create this after the first delivery, or ignore the error until then.',
    prune
      ? 'Objects that are no longer in Git are deleted.'
      : 'Objects that are no longer in Git stay in the cluster (--no-prune).',
  ];
  return [
    { comment: sourceComment, object: source },
    { comment, object: kustomization },
  ];
}
