import type { EventRecorder, EventType } from '../src/controller/event-recorder.ts';
import { LruCache } from '../src/foundation/lru-cache.ts';
import { type KubernetesObject, keyOf, keyText, type ObjectKey } from '../src/resource/object/object.ts';

/** Final events that are remembered. */
const MAX_FINAL = 10_000;

/**
 * Records events about states. A level-triggered controller repeats its findings; an event is recorded only when a finding is new
 * or has changed.
 */
export class EventDeduplicator {
  readonly #recorder: EventRecorder;
  /** The last event, by object and topic. */
  readonly #last = new Map<string, Map<string, string>>();

  readonly #final = new LruCache<string, true>({ maxEntries: MAX_FINAL });

  constructor(recorder: EventRecorder) {
    this.#recorder = recorder;
  }

  /** Records an event, unless it equals the last one about this topic of the object. Returns whether it did. */
  record(object: KubernetesObject, type: EventType, reason: string, message: string, topic = ''): boolean {
    const key = keyText(keyOf(object));
    const topics = this.#last.get(key) ?? new Map<string, string>();
    const text = `${object.metadata.uid} ${reason} ${message}`;
    if (topics.get(topic) === text) return false;
    this.#last.set(key, topics.set(topic, text));
    this.#recorder.record(object, type, reason, message);
    return true;
  }

  /** Records a final event about a topic, after which none follows about it in this process, whatever its text. Returns whether it did. */
  recordFinal(object: KubernetesObject, type: EventType, reason: string, message: string, topic: string): boolean {
    const key = `${keyText(keyOf(object))} ${object.metadata.uid} ${topic}`;
    if (this.#final.has(key)) return false;
    this.#final.set(key, true);
    this.#recorder.record(object, type, reason, message);
    return true;
  }

  /** Records that what the last event about a topic of an object says has ended, and forgets that event; nothing if there is none. */
  recordEnd(object: KubernetesObject, reason: string, message: string, topic: string): void {
    if (this.#last.get(keyText(keyOf(object)))?.delete(topic) === true)
      this.#recorder.record(object, 'Normal', reason, message);
  }

  /** Forgets the last event about one topic of an object, so that the same finding is recorded again. */
  forgetTopic(key: ObjectKey, topic: string): void {
    this.#last.get(keyText(key))?.delete(topic);
  }

  /** Forgets the last events about an object, apart from the topics to keep. */
  forget(key: ObjectKey, keep: ReadonlySet<string> = new Set()): void {
    const topics = this.#last.get(keyText(key));
    for (const topic of topics?.keys() ?? []) if (!keep.has(topic)) topics?.delete(topic);
    if (topics?.size === 0) this.#last.delete(keyText(key));
  }
}
