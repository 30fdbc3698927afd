import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { KubeApi } from '../../support/api/kube-api.ts';
import { type GitServer, startGitServer } from '../../support/git/git-server.ts';
import { newKey } from '../../support/git/ssh-server.ts';
import { bareWithCommit } from '../../support/git/write-objects.ts';
import type { ControlPlane } from './control-plane.ts';
import { created } from './extension-server.ts';
import { installDefinitions } from './install-definitions.ts';
import { Installation, NAMESPACE, type Replica, type ReplicaSettings } from './sluice-serve.ts';

const MAX_READY_MS = 60_000;
/** Milliseconds between two probes of a replica. */
const PROBE_PERIOD_MS = 50;
/** For tests in which leases expire often. A kube-apiserver that stands still for two seconds ends the leader. */
export const SHORT_LEASE = ['--lease-duration', '3s', '--renew-deadline', '2s', '--retry-period', '500ms'];

export interface KeptOptions extends Omit<ReplicaSettings, 'cacheDir'> {
  /** Default 2. */
  readonly replicas?: number;
  /** Is called with each process that the replica has. */
  readonly onStart?: (replica: Replica) => void;
}

/**
 * Sluice on a control plane, with a Git host. A replica that ends is replaced by one with an empty cache, as a pod of a Deployment; one that
 * was removed is not.
 */
export class KeptInstallation implements AsyncDisposable {
  readonly installation: Installation;
  readonly admin: KubeApi;
  readonly git: GitServer;
  /** The bare repository `packages` of the Git host. */
  readonly gitFolder: string;
  /** Of the key that signs. */
  readonly publicKey: string;
  readonly #folder: string;
  readonly #options: KeptOptions;
  readonly #kept = new Set<Replica>();
  #stopped = false;

  private constructor(
    parts: Pick<KeptInstallation, 'installation' | 'git' | 'gitFolder' | 'publicKey'>,
    folder: string,
    options: KeptOptions,
  ) {
    ({ installation: this.installation, git: this.git, gitFolder: this.gitFolder, publicKey: this.publicKey } = parts);
    this.admin = this.installation.admin;
    this.#folder = folder;
    this.#options = options;
  }

  static async start(plane: ControlPlane, options: KeptOptions = {}): Promise<KeptInstallation> {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-installation-'));
    const gitFolder = bareWithCommit(join(folder, 'packages.git'));
    const git = await startGitServer({ root: folder });
    await installDefinitions(plane.kubeconfig);
    const installation = await Installation.create(plane);
    const { publicKey, file } = newKey(folder, 'statement-key');
    const secret = { metadata: { name: 'sluice-signing-key' }, stringData: { identity: await readFile(file, 'utf8') } };
    await created(installation.admin.post(`/api/v1/namespaces/${NAMESPACE}/secrets`, secret));
    const kept = new KeptInstallation({ installation, git, gitFolder, publicKey }, folder, options);
    for (let count = 0; count < (options.replicas ?? 2); count += 1) await kept.add();
    return kept;
  }

  /** Starts one more replica. */
  async add(more: KeptOptions = {}): Promise<Replica> {
    const { onStart, ...settings } = { ...this.#options, ...more };
    const replica = await this.installation.start(settings);
    this.#kept.add(replica);
    onStart?.(replica);
    void replica.ended.then(async () => {
      if (this.#kept.delete(replica) && !this.#stopped) await this.add(more);
    });
    return replica;
  }

  /** Stops a replica gracefully; none takes its place. Returns the exit code. */
  async remove(replica: Replica): Promise<number | null> {
    this.#kept.delete(replica);
    return replica.stop();
  }

  /** The replicas that have not ended. */
  get replicas(): readonly Replica[] {
    return [...this.#kept];
  }

  /** The end of the log of every replica that ran. */
  get logs(): string {
    return this.installation.replicas
      .map(({ port, lines }) => `--- ${port}\n${lines.slice(-200).join('\n')}`)
      .join('\n');
  }

  /** Resolves with the leader once it is ready. */
  async whenReady(except?: Replica): Promise<Replica> {
    const end = Date.now() + MAX_READY_MS;
    for (;;) {
      const states = await Promise.all(
        this.replicas
          .filter((replica) => replica !== except)
          .map(async (replica) => ((await replica.isLeading()) ? replica : undefined)),
      );
      const leader = states.find((replica) => replica !== undefined);
      if (leader !== undefined) return leader;
      if (Date.now() > end) throw new Error(`no replica is ready:\n${this.logs.slice(-20_000)}`);
      await new Promise((resolve) => setTimeout(resolve, PROBE_PERIOD_MS));
    }
  }

  /** Registers the repository of the Git host in a namespace, and waits until it is Ready. */
  async register(namespace: string, name = 'packages'): Promise<void> {
    const path = `/apis/config.porch.kpt.dev/v1alpha1/namespaces/${namespace}/repositories`;
    const spec = { type: 'git', git: { repo: `${this.git.url}/packages.git`, branch: 'main', directory: '/' } };
    const kind = { apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'Repository' };
    await created(this.admin.post(path, { ...kind, metadata: { name }, spec }));
    const end = Date.now() + MAX_READY_MS;
    for (;;) {
      const { text } = await this.admin.get(`${path}/${name}`);
      if (/"type":"Ready"[^}]*"status":"True"|"status":"True"[^}]*"type":"Ready"/.test(text)) return;
      if (Date.now() > end) throw new Error(`Repository ${name} is not Ready: ${text}\n${this.logs.slice(-20_000)}`);
      await new Promise((resolve) => setTimeout(resolve, PROBE_PERIOD_MS));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true;
    await this.installation[Symbol.asyncDispose]();
    await this.git.close();
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}
