import { Agent, request } from 'undici';

/** A client of a Kubernetes API server: requests over kept-alive connections, and watches with one connection each. */
export class BenchClient {
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #agent: Agent;

  constructor(url: string, authority: string, token: string) {
    this.#url = url;
    this.#headers = { authorization: `Bearer ${token}` };
    this.#agent = new Agent({
      connect: { ca: authority },
      ...{ bodyTimeout: 0, headersTimeout: 0, keepAliveTimeout: 60_000 },
    });
  }

  /** Sends one request and reads the whole response. Throws if it failed. */
  async send(
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Buffer> {
    const text = body === undefined || Buffer.isBuffer(body) ? (body ?? null) : JSON.stringify(body);
    const answer = await request(`${this.#url}${path}`, {
      ...{ method, body: text, dispatcher: this.#agent },
      headers: { ...this.#headers, 'content-type': 'application/json', ...headers },
    });
    const answered = Buffer.from(await answer.body.arrayBuffer());
    if (answer.statusCode < 300) return answered;
    throw new Error(`${method} ${path} returned ${answer.statusCode}: ${answered.toString().slice(0, 500)}`);
  }

  /** Opens `count` watches of one path, in batches so that no handshake waits too long. */
  async watch(path: string, count: number): Promise<Watches> {
    const watches = new Watches();
    while (watches.size < count) {
      const some = Array.from({ length: Math.min(50, count - watches.size) }, () => this.#openWatch(path, watches));
      await Promise.all(some);
    }
    return watches;
  }

  async #openWatch(path: string, watches: Watches): Promise<void> {
    const abort = new AbortController();
    const { statusCode, body } = await request(`${this.#url}${path}`, {
      ...{ headers: this.#headers, dispatcher: this.#agent, signal: abort.signal },
    });
    if (statusCode !== 200) throw new Error(`watch ${path} returned ${statusCode}: ${await body.text()}`);
    watches.add(abort);
    const number = watches.size;
    body.on('error', () => undefined);
    body.on('data', (chunk: Buffer) => watches.receive(number, chunk));
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

/** Open watches of one path, with the time at which all of them received an event. */
export class Watches {
  readonly #open: AbortController[] = [];
  readonly #heard = new Set<number>();
  #all: (() => void) | undefined;
  #last = 0;
  /** The last line that was received. */
  line: Buffer = Buffer.alloc(0);

  get size(): number {
    return this.#open.length;
  }

  add(watch: AbortController): void {
    this.#open.push(watch);
  }

  receive(watch: number, chunk: Buffer): void {
    this.#last = performance.now();
    this.line = chunk;
    this.#heard.add(watch);
    if (this.#heard.size === this.#open.length) this.#all?.();
  }

  /** Milliseconds from the call of `cause` until the last watch received a new event. */
  async latency(cause: () => Promise<unknown>): Promise<number> {
    await this.quiet();
    this.#heard.clear();
    const all = new Promise<number>((resolve) => {
      this.#all = () => resolve(performance.now());
    });
    const started = performance.now();
    const done = cause();
    const ended = await all;
    this.#all = undefined;
    await done;
    return ended - started;
  }

  /** Resolves when no watch has received an event for a moment. */
  async quiet(milliseconds = 150): Promise<void> {
    do await new Promise((resolve) => setTimeout(resolve, milliseconds));
    while (performance.now() - this.#last < milliseconds);
  }

  close(): void {
    for (const watch of this.#open) watch.abort();
  }
}
