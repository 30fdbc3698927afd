import type { EventRecorder, EventType } from '../src/controller/event-recorder.ts';
import { type KubernetesObject, keyOf, keyText, type ObjectKey } from '../src/resource/object/object.ts';

/**
 * Records events about states. A level-triggered controller repeats its findings; an event is recorded only when a finding is new
 * or has changed.
 */
export class EventDeduplicator {
  readonly #recorder: EventRecorder;
  /** The last event, by object and topic. */
  readonly #last = new Map<string, Map<string, string>>();

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
