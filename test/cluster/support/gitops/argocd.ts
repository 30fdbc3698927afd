import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { loadAll } from 'js-yaml';
import { eventually } from '../../../support/api/eventually.ts';
import { KubeApi, type KubeObject } from '../../../support/api/kube-api.ts';
import { freePort } from '../../../support/free-port.ts';
import { applyObjects } from '../apply-objects.ts';
import { Component, MAX_START_MS } from '../component.ts';
import type { ClusterPrograms } from '../programs.ts';
import type { ArgoCdProgram } from './argocd-program.ts';
import type { RedisProgram } from './redis-program.ts';

export const ARGOCD_NAMESPACE = 'argocd';
const DEFINITIONS = ['application-crd', 'applicationset-crd', 'appproject-crd'].map((name) => `crds/${name}`);
const CONFIGURATION = ['cm', 'cmd-params-cm', 'secret', 'rbac-cm', 'ssh-known-hosts-cm', 'tls-certs-cm', 'gpg-keys-cm'];

/** The value of `webhook.github.secret`. */
export const ARGOCD_HOOK_TOKEN = 'token-of-the-webhook';

export interface ArgoCdPrograms {
  /** Default: an hour, so that only triggers start a sync. Argo CD's own default is two to three minutes. */
  readonly pollInterval?: string;
  readonly cluster: ClusterPrograms;
  readonly argocd: ArgoCdProgram;
  readonly redis: RedisProgram;
}

/** Argo CD without its user interface on a control plane: its controllers, repo-server, API server and redis. */
export class ArgoCd implements AsyncDisposable {
  readonly #folder: string;
  /** In the order of their starts. */
  readonly #components: Component[] = [];
  #url = '';

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** `logs` is the folder for the logs of the components. */
  static async start(programs: ArgoCdPrograms, kubeconfig: string, logs: string): Promise<ArgoCd> {
    const api = await KubeApi.of(kubeconfig);
    try {
      await install(api, join(programs.argocd.module, 'manifests'));
    } finally {
      api.close();
    }
    const argoCd = new ArgoCd(await mkdtemp(join(tmpdir(), 'sluice-argocd-')));
    try {
      await argoCd.#start(programs, kubeconfig, logs);
      return argoCd;
    } catch (error) {
      await argoCd[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Address of the API server. */
  get url(): string {
    return this.#url;
  }

  async #start(
    { pollInterval = '1h', cluster, argocd, redis }: ArgoCdPrograms,
    kubeconfig: string,
    logs: string,
  ): Promise<void> {
    const folder = (name: string) => join(this.#folder, name);
    for (const name of ['tls', 'ssh', 'plugins', 'gpg/keys', 'gpg/source', 'tmp', 'redis'])
      await mkdir(folder(name), { recursive: true, mode: 0o700 });
    const environment = {
      ARGOCD_FAKE_IN_CLUSTER: 'true',
      ARGOCD_GPG_ENABLED: 'true',
      ARGOCD_GNUPGHOME: folder('gpg/keys'),
      ARGOCD_GPG_DATA_PATH: folder('gpg/source'),
      ARGOCD_APPLICATIONSET_CONTROLLER_REQUEUE_AFTER: pollInterval,
      ARGOCD_RECONCILIATION_JITTER: '0s',
      ARGOCD_RECONCILIATION_TIMEOUT: pollInterval,
      ARGOCD_PLUGINSOCKFILEPATH: folder('plugins'),
      ARGOCD_SSH_DATA_PATH: folder('ssh'),
      ARGOCD_TLS_DATA_PATH: folder('tls'),
      HOME: folder('tmp'),
      KUBECONFIG: kubeconfig,
      // kustomize, and the scripts that verify signatures.
      PATH: [dirname(cluster.pathOf('kustomize')), argocd.scripts, process.env.PATH].join(':'),
      TMPDIR: folder('tmp'),
    };
    const run = (name: string, program: string, flags: readonly string[], more: Readonly<Record<string, string>>) =>
      this.#components.push(
        Component.start({ name, program, flags, environment: more, log: join(logs, `${name}.log`) }),
      );
    const address = async () => `127.0.0.1:${await freePort()}`;
    const [redisPort, repoPort, metricsPort] = [await freePort(), await freePort(), await freePort()];
    const common = [`--kubeconfig=${kubeconfig}`, `--namespace=${ARGOCD_NAMESPACE}`];
    run(
      'redis',
      redis.path,
      ['--port', `${redisPort}`, '--bind', '127.0.0.1', '--save', '', '--dir', folder('redis')],
      redis.environment,
    );
    const repoServer = [`--port=${repoPort}`, `--redis=127.0.0.1:${redisPort}`, '--disable-tls'];
    const listen = ['--address=127.0.0.1', '--metrics-address=127.0.0.1', `--metrics-port=${await freePort()}`];
    run('argocd-repo-server', argocd.path, ['repo-server', ...repoServer, ...listen], environment);
    const repo = `127.0.0.1:${repoPort}`;
    run(
      'argocd-application-controller',
      argocd.path,
      [
        ...['application-controller', ...common, `--repo-server=${repo}`, '--repo-server-plaintext'],
        ...[`--redis=127.0.0.1:${redisPort}`, `--metrics-port=${metricsPort}`],
      ],
      environment,
    );
    run(
      'argocd-applicationset-controller',
      argocd.path,
      [
        ...['applicationset-controller', ...common, `--argocd-repo-server=${repo}`, '--repo-server-plaintext'],
        ...[
          `--metrics-addr=${await address()}`,
          `--probe-addr=${await address()}`,
          `--webhook-addr=${await address()}`,
        ],
      ],
      environment,
    );
    const port = await freePort();
    const metrics = ['--metrics-address=127.0.0.1', `--metrics-port=${await freePort()}`];
    const repoFlags = [`--repo-server=${repo}`, '--repo-server-plaintext', `--redis=127.0.0.1:${redisPort}`];
    run(
      'argocd-server',
      argocd.path,
      ['server', ...common, '--insecure', '--address=127.0.0.1', `--port=${port}`, ...metrics, ...repoFlags],
      environment,
    );
    this.#url = `http://127.0.0.1:${port}`;
    const isHealthy = async (url: string) => (await fetch(url).catch(() => undefined))?.status === 200;
    await eventually(
      async () => {
        for (const component of this.#components) component.expectRunning();
        return (await isHealthy(`http://127.0.0.1:${metricsPort}/healthz`)) && isHealthy(`${this.#url}/healthz`);
      },
      (ready) => ready,
      MAX_START_MS,
    );
  }

  /** Adds a public key of OpenPGP, as the kubelet mounts the ConfigMap `argocd-gpg-keys-cm`. The name is the id of the key. */
  async trustKey(keyId: string, armored: string): Promise<void> {
    const path = join(this.#folder, 'gpg/source', keyId);
    await writeFile(`${path}.new`, armored);
    await rename(`${path}.new`, path);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (let last = this.#components.pop(); last !== undefined; last = this.#components.pop()) await last.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

async function install(api: KubeApi, manifests: string): Promise<void> {
  const read = (file: string) => loadAll(readFileSync(join(manifests, `${file}.yaml`), 'utf8')) as KubeObject[];
  const inNamespace = (object: object) => {
    const { metadata, ...rest } = object as KubeObject;
    return { ...rest, metadata: { ...metadata, namespace: ARGOCD_NAMESPACE } } as KubeObject;
  };
  await applyObjects(api, DEFINITIONS.flatMap(read));
  await applyObjects(api, [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: ARGOCD_NAMESPACE } } as unknown as KubeObject,
    ...CONFIGURATION.flatMap((name) => read(`base/config/argocd-${name}`))
      .map(inNamespace)
      .map((object) =>
        object.kind === 'Secret' ? { ...object, stringData: { 'webhook.github.secret': ARGOCD_HOOK_TOKEN } } : object,
      ),
    inNamespace({
      apiVersion: 'argoproj.io/v1alpha1',
      kind: 'AppProject',
      metadata: { name: 'default' },
      spec: {
        sourceRepos: ['*'],
        destinations: [{ namespace: '*', server: '*' }],
        clusterResourceWhitelist: [{ group: '*', kind: '*' }],
      },
    }),
  ]);
}
