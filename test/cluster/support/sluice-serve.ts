import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:https';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { eventually } from '../../support/api/eventually.ts';
import { KubeApi } from '../../support/api/kube-api.ts';
import { freePort } from '../../support/free-port.ts';
import { applyObjects } from './apply-objects.ts';
import { MAX_START_MS } from './component.ts';
import { readManifests } from './render.ts';

const BINARY = fileURLToPath(new URL('../../../bin/sluice.js', import.meta.url));
export const NAMESPACE = 'sluice-system';
const SERVICE = 'sluice';
const SERVICES = `/api/v1/namespaces/${NAMESPACE}/services`;
const API_SERVICE = 'v1alpha1.porch.kpt.dev';
const API_SERVICES = '/apis/apiregistration.k8s.io/v1/apiservices';
const PACKAGES = '/apis/porch.kpt.dev/v1alpha1/packagerevisions';
/**
 * How long the kube-apiserver can hold the API unavailable after its server serves: 6 seconds for a check that gets no response and has
 * begun before, 30 seconds until the next one, and 6 for that (`AvailableConditionController` of k8s.io/kube-aggregator). Sluice requests
 * checks earlier.
 */
const MAX_UNAVAILABLE_MS = 42_000;
const ACCOUNT = `system:serviceaccount:${NAMESPACE}:sluice`;

/** A control plane as `ControlPlane` and the one of the project are. */
export interface PlaneAccess {
  /** Of an administrator. */
  readonly kubeconfig: string;
  /** Issues a client certificate for a user; returns the path of a kubeconfig. */
  userKubeconfig(name: string, groups?: readonly string[]): Promise<string>;
}

export interface ReplicaSettings {
  /** Default `both`. */
  readonly role?: 'both' | 'api' | 'controllers';
  /** Further options of the command. */
  readonly options?: readonly string[];
  /** Default: a fresh folder, which is deleted with the replica. */
  readonly cacheDir?: string;
  /** Default: that of the account of an installation. */
  readonly kubeconfig?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

/** One process of `sluice serve`. */
export class Replica implements AsyncDisposable {
  readonly port: number;
  readonly role: string;
  readonly child: ChildProcess;
  /** The lines of its log. */
  readonly lines: string[] = [];
  /** Resolves with the exit code, or null after a signal, when it has ended. */
  readonly ended: Promise<number | null>;
  readonly #folder: string;
  #isRunning = true;

  constructor(port: number, role: string, child: ChildProcess, folder: string) {
    this.port = port;
    this.role = role;
    this.child = child;
    this.#folder = folder;
    for (const stream of [child.stdout, child.stderr])
      if (stream !== null) createInterface(stream).on('line', (line) => this.lines.push(line));
    this.ended = new Promise((resolve) =>
      child.on('close', (code) => {
        this.#isRunning = false;
        resolve(code);
      }),
    );
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  /** Status and body of a health check, which needs no credentials; 0 where nothing listens. */
  probe(path: string): Promise<{ readonly status: number; readonly text: string }> {
    return new Promise((resolve) => {
      const call = request({ host: '127.0.0.1', port: this.port, path, rejectUnauthorized: false, timeout: 5000 });
      call.on('error', () => resolve({ status: 0, text: '' }));
      call.on('timeout', () => call.destroy());
      call.on('response', (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part: string) => {
          text += part;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
        response.on('error', () => resolve({ status: 0, text }));
      });
      call.end();
    });
  }

  /** True on the leader once it serves. A standby responds to requests without credentials with 503, and a leader with 401. */
  async isLeading(): Promise<boolean> {
    return (await this.isWarm()) && (await this.probe('/apis')).status === 401;
  }

  /** True on a replica that could lead, or leads. */
  async isWarm(): Promise<boolean> {
    return this.#isRunning && (await this.probe('/readyz')).status === 200;
  }

  /** Waits until it leads and serves. */
  async leading(): Promise<void> {
    await this.#until('leads', () => this.isLeading());
  }

  /** Waits until it could lead. */
  async warm(): Promise<void> {
    await this.#until('is warm', () => this.isWarm());
  }

  /** Waits until it listens. */
  async live(): Promise<void> {
    await this.#until('listens', async () => (await this.probe('/livez')).status === 200);
  }

  async #until(what: string, condition: () => Promise<boolean>): Promise<void> {
    const holds = await eventually(condition, (held) => held || !this.#isRunning, MAX_START_MS).catch(() => false);
    if (!holds) throw new Error(`not in time: the replica ${what}:\n${this.lines.join('\n')}`);
  }

  /** Waits until a line of the log matches. */
  async logged(pattern: RegExp): Promise<string> {
    await eventually(
      async () => this.lines.some((line) => pattern.test(line)),
      (found) => found,
    );
    return this.lines.find((line) => pattern.test(line)) ?? '';
  }

  kill(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT' | 'SIGTERM'): void {
    this.child.kill(signal);
  }

  /** Ends it with SIGTERM, and returns the exit code. */
  async stop(): Promise<number | null> {
    this.child.kill('SIGTERM');
    return this.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill('SIGKILL');
    await this.ended;
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/**
 * Sluice as it is installed in a cluster: namespace, account and rights, Service and APIService, and replicas. The Service leads to the
 * replica that leads, as in a cluster.
 */
export class Installation implements AsyncDisposable {
  readonly admin: KubeApi;
  /** Of the account of the replicas. */
  readonly kubeconfig: string;
  readonly replicas: Replica[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(admin: KubeApi, kubeconfig: string) {
    this.admin = admin;
    this.kubeconfig = kubeconfig;
    this.#server = createServer((socket) => void this.#forward(socket));
  }

  /** Installs Sluice without replicas. The definitions of `deploy/crds` must be there. */
  static async create(plane: PlaneAccess): Promise<Installation> {
    const installation = await Installation.#listening(plane);
    await installation.#install();
    return installation;
  }

  /** Adopts Sluice as it was installed with the manifests or the chart: its Service leads to the replicas of the test from now on. */
  static async adopt(plane: PlaneAccess): Promise<Installation> {
    const installation = await Installation.#listening(plane);
    await installation.#replaceRoute();
    return installation;
  }

  static async #listening(plane: PlaneAccess): Promise<Installation> {
    const admin = await KubeApi.of(plane.kubeconfig);
    const installation = new Installation(admin, await plane.userKubeconfig(ACCOUNT, ACCOUNT_GROUPS));
    await new Promise<void>((resolve) => installation.#server.listen(0, '127.0.0.1', resolve));
    return installation;
  }

  /** Starts a replica, and resolves at once. */
  async start(settings: ReplicaSettings = {}): Promise<Replica> {
    const { role = 'both', options = [], kubeconfig = this.kubeconfig, environment } = settings;
    const port = await freePort();
    const folder = await mkdtemp(join(tmpdir(), 'sluice-replica-'));
    const child = spawn(
      process.execPath,
      [
        ...[BINARY, 'serve', '--role', role, '--kubeconfig', kubeconfig, '--namespace', NAMESPACE],
        ...['--listen', `127.0.0.1:${port}`, '--cache-dir', settings.cacheDir ?? join(folder, 'cache')],
        ...['--allow-git-host', '127.0.0.1', '--log', 'json', ...options],
      ],
      { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, NO_COLOR: '1', ...environment } },
    );
    const replica = new Replica(port, role, child, folder);
    this.replicas.push(replica);
    return replica;
  }

  /** Waits until a replica leads and the package kinds are served through the kube-apiserver. */
  async served(): Promise<void> {
    try {
      await eventually(
        async () => (await this.#leader()) !== undefined,
        (leads) => leads,
        MAX_START_MS,
      );
      await eventually(
        () => this.admin.get(PACKAGES),
        ({ status }) => status === 200,
        MAX_UNAVAILABLE_MS,
      );
    } catch (cause) {
      const answers = [await this.admin.get(PACKAGES), await this.admin.get(`${API_SERVICES}/${API_SERVICE}`)];
      const logs = this.replicas.map(({ lines }) => lines.join('\n')).join('\n---\n');
      const texts = answers.map(({ text }) => text).join('\n');
      throw new Error(`the package kinds are not served: ${texts}\n${logs}`, { cause });
    }
  }

  /** The replica that leads and serves packages. */
  async #leader(): Promise<Replica | undefined> {
    const probes = this.replicas
      .filter(({ role }) => role !== 'controllers')
      .map(async (replica) => ((await replica.isLeading()) ? replica : Promise.reject(new Error('it does not lead'))));
    // One that stands still does not respond.
    return Promise.any(probes).catch(() => undefined);
  }

  async #forward(socket: Socket): Promise<void> {
    this.#track(socket);
    const replica = await this.#leader();
    if (replica === undefined) {
      // The error of a reset names the port of the client. The aggregator writes each other error into the APIService, and checks at each
      // change of it: without a leader it would do nothing else, and occupy a core.
      socket.once('data', () => socket.end());
      return;
    }
    const target = connect(replica.port, '127.0.0.1');
    this.#track(target);
    socket.pipe(target).pipe(socket);
    socket.on('close', () => target.destroy());
    target.on('close', () => socket.destroy());
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket);
    // Replicas are killed on purpose.
    socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket));
  }

  async #install(): Promise<void> {
    // The rights of an installation, and no others.
    await applyObjects(this.admin, readManifests(...RIGHTS));
    const port = await this.#createService();
    await this.#create(API_SERVICES, {
      metadata: { name: API_SERVICE },
      spec: {
        ...{ group: 'porch.kpt.dev', version: 'v1alpha1', groupPriorityMinimum: 1000, versionPriority: 15 },
        service: { namespace: NAMESPACE, name: SERVICE, port },
      },
    });
  }

  async #replaceRoute(): Promise<void> {
    await this.admin.delete(`${SERVICES}/${SERVICE}`);
    const spec = { service: { port: await this.#createService() } };
    const { status, text } = await this.admin.patch(`${API_SERVICES}/${API_SERVICE}`, { spec });
    if (status !== 200) throw new Error(text);
  }

  /** The aggregator connects to addresses of this machine only by such a Service. Returns its port. */
  async #createService(): Promise<number> {
    const { port } = this.#server.address() as AddressInfo;
    await this.#create(SERVICES, {
      metadata: { name: SERVICE },
      spec: { type: 'ExternalName', externalName: 'localhost', ports: [{ port }] },
    });
    return port;
  }

  async #create(path: string, body: unknown): Promise<void> {
    const { status, text } = await this.admin.post(path, body);
    if (status !== 201) throw new Error(`the server responded with ${status} to ${path}: ${text}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.replicas.map((replica) => replica[Symbol.asyncDispose]()));
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
    this.admin.close();
  }
}

const RIGHTS = ['base/namespace', 'base/service-account', 'base/roles', 'base/user-roles'];
const ACCOUNT_GROUPS = ['system:serviceaccounts', `system:serviceaccounts:${NAMESPACE}`, 'system:authenticated'];
