import { rmSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { KubeApi } from '../../support/api/kube-api.ts';
import { freePort } from '../../support/free-port.ts';
import { Component, MAX_START_MS } from './component.ts';
import { type Credentials, createCredentials } from './credentials.ts';
import { apiServerFlags, controllerManagerFlags, etcdFlags, kwokFlags } from './flags.ts';
import type { ClusterPrograms } from './programs.ts';

/** Another process can take a port between its choice and its use. */
const MAX_ATTEMPTS = 3;
const PORT_TAKEN = /address already in use/;

export interface ControlPlaneOptions {
  readonly programs: ClusterPrograms;
  /** Starts kube-controller-manager: garbage collection, namespaces, workloads, service accounts. */
  readonly controllerManager?: boolean;
  /** Starts kwok, which plays nodes and their pods. */
  readonly kwok?: boolean;
  /** Further flags of kube-apiserver. */
  readonly apiServerFlags?: readonly string[];
}

/** An etcd and a kube-apiserver, and what else was requested, on loopback, with their data in a folder of the system's temporary one. */
export class ControlPlane implements AsyncDisposable {
  /** All its files: keys, data, and logs in `logs`. */
  readonly folder: string;
  /** `https://127.0.0.1:<port>`. */
  readonly url: string;
  /** The file of its administrator, a member of `system:masters`. */
  readonly kubeconfig: string;
  readonly #credentials: Credentials;
  /** In the order of their starts. */
  readonly #components: Component[] = [];
  /** The programs are killed at the same moment, and can still write a file. */
  readonly #removeFolder = () => rmSync(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });

  private constructor(folder: string, port: number, credentials: Credentials) {
    this.folder = folder;
    this.url = `https://127.0.0.1:${port}`;
    this.#credentials = credentials;
    this.kubeconfig = join(folder, 'admin.kubeconfig');
    process.once('exit', this.#removeFolder);
  }

  static async start(options: ControlPlaneOptions): Promise<ControlPlane> {
    for (let attempt = 1; ; attempt += 1)
      try {
        return await ControlPlane.#startOnce(options);
      } catch (error) {
        if (attempt === MAX_ATTEMPTS || !PORT_TAKEN.test(String(error))) throw error;
      }
  }

  static async #startOnce(options: ControlPlaneOptions): Promise<ControlPlane> {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-cluster-'));
    await mkdir(join(folder, 'logs'));
    const ports = { apiServer: await freePort(), etcd: await freePort(), etcdPeer: await freePort() };
    const credentials = await createCredentials(folder);
    const plane = new ControlPlane(folder, ports.apiServer, credentials);
    try {
      await plane.userKubeconfig('admin', ['system:masters']);
      await plane.#startComponents(options, ports);
      return plane;
    } catch (error) {
      const { message } = error as Error;
      await plane.stop({ keepLogs: true });
      throw new Error(`the control plane does not start: ${message}\nlogs: ${join(folder, 'logs')}`, { cause: error });
    }
  }

  async #startComponents(
    { programs, controllerManager = false, kwok = false, apiServerFlags: more = [] }: ControlPlaneOptions,
    ports: { readonly apiServer: number; readonly etcd: number; readonly etcdPeer: number },
  ): Promise<void> {
    const run = (name: Parameters<ClusterPrograms['pathOf']>[0], flags: readonly string[]) => {
      const log = join(this.folder, 'logs', `${name}.log`);
      this.#components.push(Component.start({ name, program: programs.pathOf(name), flags, log }));
    };
    run('etcd', etcdFlags(this.folder, ports));
    run('kube-apiserver', [...apiServerFlags(this.folder, ports, this.#credentials), ...more]);
    const api = await KubeApi.of(this.kubeconfig);
    try {
      await this.#holds('/readyz succeeds', async () => (await api.get('/readyz')).status === 200);
      if (controllerManager) {
        const name = 'system:kube-controller-manager';
        run('kube-controller-manager', controllerManagerFlags(await this.userKubeconfig(name), this.#credentials));
        const account = '/api/v1/namespaces/default/serviceaccounts/default';
        await this.#holds('controllers run', async () => (await api.get(account)).status === 200);
      }
      if (kwok) run('kwok', kwokFlags(await this.userKubeconfig('kwok', ['system:masters']), programs.stages));
    } finally {
      api.close();
    }
  }

  /** Polls until a condition holds. Throws at once if a program has ended. */
  async #holds(what: string, condition: () => Promise<boolean>): Promise<void> {
    const deadline = Date.now() + MAX_START_MS;
    for (;;) {
      for (const component of this.#components) component.expectRunning();
      // Until the server listens, there is no connection.
      if (await condition().catch(() => false)) return;
      if (Date.now() > deadline) throw new Error(`not within ${MAX_START_MS} ms: ${what}`);
      await delay(50);
    }
  }

  /** Issues a client certificate for a user, who may do what RBAC grants. Returns the path of a kubeconfig. */
  async userKubeconfig(name: string, groups: readonly string[] = []): Promise<string> {
    const { certificate, key } = await this.#credentials.issueUser(name, groups);
    const data = (text: string | Buffer) => Buffer.from(text).toString('base64');
    const ca = await readFile(this.#credentials.caFile);
    const content = {
      ...{ apiVersion: 'v1', kind: 'Config', 'current-context': name },
      clusters: [{ name: 'cluster', cluster: { server: this.url, 'certificate-authority-data': data(ca) } }],
      users: [{ name, user: { 'client-certificate-data': data(certificate), 'client-key-data': data(key) } }],
      contexts: [{ name, context: { cluster: 'cluster', user: name } }],
    };
    const path = join(this.folder, `${name.replaceAll(/[^\w-]/g, '-')}.kubeconfig`);
    await writeFile(path, JSON.stringify(content), { mode: 0o600 });
    return path;
  }

  /** Kills kube-apiserver, as a node that fails. */
  async killApiServer(): Promise<void> {
    await this.#apiServer.kill();
  }

  /** Starts a killed kube-apiserver, and resolves when it is ready. */
  async startApiServer(): Promise<void> {
    this.#apiServer.startAgain();
    const api = await KubeApi.of(this.kubeconfig);
    try {
      await this.#holds('/readyz succeeds', async () => (await api.get('/readyz')).status === 200);
    } finally {
      api.close();
    }
  }

  get #apiServer(): Component {
    return this.#components[1] as Component;
  }

  /** The numbers of its processes. */
  get pids(): readonly number[] {
    return this.#components.map(({ pid }) => pid);
  }

  /** Stops the programs, clients before the servers that they use, and deletes the folder; `keepLogs` keeps the logs in it. */
  async stop({ keepLogs = false }: { readonly keepLogs?: boolean } = {}): Promise<void> {
    process.off('exit', this.#removeFolder);
    for (let last = this.#components.pop(); last !== undefined; last = this.#components.pop()) await last.stop();
    if (!keepLogs) return rm(this.folder, { recursive: true, force: true });
    for (const name of ['etcd', 'tokens']) await rm(join(this.folder, name), { recursive: true, force: true });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}
