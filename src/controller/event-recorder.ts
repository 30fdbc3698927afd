import { createHash } from 'node:crypto';
import { Mutex } from '../foundation/concurrency/mutex.ts';
import { isSluiceError } from '../foundation/sluice-error.ts';
import { cleanText } from '../foundation/text/clean-text.ts';
import { ellipsize } from '../foundation/text/shorten.ts';
import type { Clock } from '../foundation/time/clock.ts';
import type { Client } from '../resource/client/client.ts';
import { eventKind } from '../resource/kinds/core/event.ts';
import { DEFAULT_NAMESPACE, type KubernetesObject, type ObjectKey } from '../resource/object/object.ts';

export interface EventRecorderOptions {
  readonly client: Client;
  readonly clock: Clock;
  /** Name of the reporting component, for instance `controller:approval`. */
  readonly component: string;
  /** Maximum number of different events of this recorder in the storage; it deletes older ones. Default 1000. */
  readonly limit?: number;
  /** Called if an event could not be written. Recording never fails for the caller. */
  readonly onError?: (error: unknown) => void;
}

export type EventType = 'Normal' | 'Warning';

const MAX_MESSAGE_CHARACTERS = 1024;
/** Events that wait to be written; beyond that new ones are dropped and reported to `onError`. */
const MAX_BACKLOG_EVENTS = 1000;

/** Recorders with events that wait to be written. */
const writing = new Set<EventRecorder>();

/** Resolves when everything is written that was recorded before the call, by any recorder of this process. False if nothing waited. */
export async function flushEvents(): Promise<boolean> {
  const recorders = [...writing];
  await Promise.all(recorders.map((recorder) => recorder.flush()));
  return recorders.length > 0;
}

/**
 * Reports events about objects to users, as core Events. The same object, type, reason and message is one Event with a
 * count. Events are written in order, in the background.
 */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  /** Names of events written, the one that was longest not seen first. */
  readonly #written = new Map<string, ObjectKey>();
  #backlog = 0;
  readonly #writes = new Mutex();

  constructor(options: EventRecorderOptions) {
    this.#options = options;
  }

  /** `reason` is one CamelCase word, machine-readable; `message` is a human-readable sentence, which may contain texts of users. */
  record(object: KubernetesObject, type: EventType, reason: string, message: string): void {
    if (this.#backlog >= MAX_BACKLOG_EVENTS) {
      this.#options.onError?.(new Error(`event ${reason} dropped: ${MAX_BACKLOG_EVENTS} events wait to be written`));
      return;
    }
    this.#backlog += 1;
    writing.add(this);
    // With milliseconds: kubectl lists events in the order of their times.
    const now = new Date(this.#options.clock.now()).toISOString();
    void this.#writes.run(async () => {
      try {
        await this.#write(object, type, reason, cleanText(ellipsize(message, MAX_MESSAGE_CHARACTERS)), now);
      } catch (error) {
        this.#options.onError?.(error);
      } finally {
        this.#backlog -= 1;
        if (this.#backlog === 0) writing.delete(this);
      }
    });
  }

  /** Resolves when everything that was recorded is written or has failed. */
  flush(): Promise<void> {
    return this.#writes.run(async () => {});
  }

  async #write(object: KubernetesObject, type: EventType, reason: string, message: string, now: string): Promise<void> {
    const { client, component } = this.#options;
    const { namespace = DEFAULT_NAMESPACE, name, uid, resourceVersion } = object.metadata;
    const identity = [object.apiVersion, object.kind, namespace, name, uid ?? '', type, reason, message, component];
    // The name follows from the content, so that the count continues after a restart.
    const digest = createHash('sha256').update(JSON.stringify(identity)).digest('hex').slice(0, 16);
    const key = { namespace, name: `${name.slice(0, 200).replace(/[^a-z0-9]+$/, '')}.${digest}` };
    const old = await client.find(eventKind, key);
    if (old !== undefined) {
      await client.patch(eventKind, key, { count: (old.count ?? 1) + 1, lastTimestamp: now });
    } else {
      try {
        await client.create(eventKind, {
          metadata: key,
          involvedObject: { apiVersion: object.apiVersion, kind: object.kind, namespace, name, uid, resourceVersion },
          type,
          reason,
          message,
          count: 1,
          firstTimestamp: now,
          lastTimestamp: now,
          source: { component },
          reportingComponent: component,
        });
      } catch (error) {
        // Another process wrote the very same event at the same time: it is recorded.
        if (!isSluiceError(error, 'AlreadyExists')) throw error;
      }
    }
    await this.#forgetOldest(key);
  }

  async #forgetOldest(key: ObjectKey): Promise<void> {
    this.#written.delete(key.name);
    this.#written.set(key.name, key);
    for (const [name, oldest] of this.#written) {
      if (this.#written.size <= (this.#options.limit ?? 1000)) return;
      this.#written.delete(name);
      try {
        await this.#options.client.delete(eventKind, oldest);
      } catch (error) {
        // Another process removed it.
        if (!isSluiceError(error, 'NotFound')) throw error;
      }
    }
  }
}
