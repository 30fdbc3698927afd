import { setTimeout as delay } from 'node:timers/promises';
import { PODS, reportReplicaPod } from './replica-pod.ts';
import type { Installation, Replica } from './sluice-serve.ts';

const PERIOD_MS = 200;

/**
 * Plays kubelet for the pods that the controllers of a control plane create: each runs as a process of the test, which is started again when it
 * ends, as a container is.
 */
export class PodPlayer implements AsyncDisposable {
  readonly #installation: Installation;
  readonly #replicas = new Map<string, Replica>();
  readonly #ready = new Set<string>();
  readonly #loop: Promise<void>;
  #stopped = false;
  /** Of the loop. */
  #failure: unknown;

  constructor(installation: Installation) {
    this.#installation = installation;
    this.#loop = this.#play().catch((error: unknown) => {
      this.#failure = error;
    });
  }

  /** What its replicas logged. */
  get log(): string {
    return [...this.#replicas].map(([name, { lines }]) => `${name}:\n${lines.join('\n')}`).join('\n');
  }

  /** How many replicas run. */
  get count(): number {
    return this.#replicas.size;
  }

  async #play(): Promise<void> {
    for (; !this.#stopped; await delay(PERIOD_MS)) {
      const { body } = await this.#installation.admin.list(PODS);
      const names = body.items.map(({ metadata }) => metadata.name);
      // A pod without a node is deleted at once.
      for (const [name, replica] of this.#replicas)
        if (!names.includes(name)) {
          this.#replicas.delete(name);
          await replica.stop();
        }
      for (const [at, name] of names.entries()) {
        const running = this.#replicas.get(name);
        const replica =
          running?.isRunning === true ? running : await this.#installation.start({ environment: { POD_NAME: name } });
        this.#replicas.set(name, replica);
        if (this.#ready.has(name) || !(await replica.isWarm())) continue;
        this.#ready.add(name);
        await reportReplicaPod(this.#installation.admin, name, { ready: true, ip: `10.1.0.${at + 1}` });
      }
    }
  }

  /** Throws if it could not play. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true;
    await this.#loop;
    if (this.#failure !== undefined) throw this.#failure;
  }
}
