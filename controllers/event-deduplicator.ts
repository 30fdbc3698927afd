import type { EventRecorder, EventType } from '../src/controller/event-recorder.ts';
import { type KubernetesObject, keyOf, keyText, type ObjectKey } from '../src/resource/object/object.ts';

/**
 * Events about states. A level-triggered controller comes to the same finding again and again; people hear of it when it is new
 * or has changed.
 */
export class TellOnce {
  readonly #recorder: EventRecorder;
  /** What was said last, by object and topic. */
  readonly #said = new Map<string, Map<string, string>>();

  constructor(recorder: EventRecorder) {
    this.#recorder = recorder;
  }

  /** Records an event, unless it is what was last said about this topic of the object. */
  tell(object: KubernetesObject, type: EventType, reason: string, message: string, topic = ''): void {
    const key = keyText(keyOf(object));
    const topics = this.#said.get(key) ?? new Map<string, string>();
    const text = `${object.metadata.uid} ${reason} ${message}`;
    if (topics.get(topic) === text) return;
    this.#said.set(key, topics.set(topic, text));
    this.#recorder.record(object, type, reason, message);
  }

  /** Forgets what was said about one topic of an object, so that it is news when it comes back. */
  forgetTopic(key: ObjectKey, topic: string): void {
    this.#said.get(keyText(key))?.delete(topic);
  }

  /** Forgets what was said about an object, apart from the topics to keep. */
  forget(key: ObjectKey, keep: ReadonlySet<string> = new Set()): void {
    const topics = this.#said.get(keyText(key));
    for (const topic of topics?.keys() ?? []) if (!keep.has(topic)) topics?.delete(topic);
    if (topics?.size === 0) this.#said.delete(keyText(key));
  }
}
