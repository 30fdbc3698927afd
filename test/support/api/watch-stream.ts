import type { IncomingMessage } from 'node:http';
import { createInterface } from 'node:readline';
import type { KubeObject } from './kube-api.ts';

export interface SeenEvent {
  readonly type: string;
  readonly object: KubeObject;
}

/** How long, in milliseconds, an event is waited for before the test fails. */
const TIMEOUT_MS = 50_000;

/** The events of one watch, in the order in which they come. */
export class WatchStream implements Disposable {
  readonly #response: IncomingMessage;
  readonly #events: SeenEvent[] = [];
  #ended = false;
  #wake: () => void = () => undefined;

  constructor(response: IncomingMessage) {
    this.#response = response;
    const lines = createInterface({ input: response });
    lines.on('line', (line) => {
      this.#events.push(JSON.parse(line) as SeenEvent);
      this.#wake();
    });
    const end = () => {
      this.#ended = true;
      this.#wake();
    };
    lines.on('close', end);
    // A server that is killed breaks the connection: the reader of lines throws an error of its own.
    lines.on('error', end);
  }

  /** The next event; undefined if the server has ended the watch. Throws if neither happens for long. */
  async next(): Promise<SeenEvent | undefined> {
    const end = Date.now() + TIMEOUT_MS;
    while (this.#events.length === 0 && !this.#ended) {
      if (Date.now() > end) throw new Error(`no event came within ${TIMEOUT_MS / 1000} s`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        setTimeout(resolve, 1000);
      });
    }
    return this.#events.shift();
  }

  /** The next event that is no bookmark; throws at the end of the watch. */
  async change(): Promise<SeenEvent> {
    for (;;) {
      const event = await this.next();
      if (event === undefined) throw new Error('the watch has ended');
      if (event.type !== 'BOOKMARK') return event;
    }
  }

  /** So many events that are no bookmarks, as `TYPE name`. */
  async changes(count: number): Promise<string[]> {
    const seen: string[] = [];
    while (seen.length < count) {
      const { type, object } = await this.change();
      seen.push(`${type} ${object.metadata.name}`);
    }
    return seen;
  }

  /** Everything until the server ends the watch. */
  async rest(): Promise<SeenEvent[]> {
    const seen: SeenEvent[] = [];
    for (let event = await this.next(); event !== undefined; event = await this.next()) seen.push(event);
    return seen;
  }

  [Symbol.dispose](): void {
    this.#response.destroy();
  }
}
