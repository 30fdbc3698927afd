import type { EventType } from '../../src/controller/event-recorder.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { type KubernetesObject, keyOf, keyText, type ObjectKey } from '../../src/resource/object/object.ts';

const REASON = 'PullRequestFailed';
const TOPIC = 'failed';

interface Events {
  record(object: KubernetesObject, type: EventType, reason: string, message: string, topic: string): void;
  forgetTopic(key: ObjectKey, topic: string): void;
}

/** Why the Git host does not accept what the pull requests of proposals need: in an event, and for `sluice why` until it ends. */
export class HostFailures {
  readonly #store: Pick<RevisionStore, 'find' | 'repositoryOf'>;
  readonly #events: Events;
  /** What is noted of each proposal, as far as this process knows; empty for nothing. */
  readonly #noted = new Map<string, string>();

  constructor(store: Pick<RevisionStore, 'find' | 'repositoryOf'>, events: Events) {
    this.#store = store;
    this.#events = events;
  }

  report(object: KubernetesObject, message: string): void {
    this.#events.record(object, 'Warning', REASON, message, TOPIC);
    this.#note(keyOf(object), message);
  }

  /** The host accepted everything. */
  end(key: ObjectKey): void {
    this.#events.forgetTopic(key, TOPIC);
    this.#note(key, '');
  }

  forget(key: ObjectKey): void {
    this.#noted.delete(keyText(key));
  }

  #note(key: ObjectKey, message: string): void {
    const name = keyText(key);
    if (this.#noted.get(name) === message) return;
    const revision = this.#store.find(name);
    if (revision === undefined) return;
    this.#store.repositoryOf(revision).noteFailedPull(revision.name, message === '' ? undefined : message);
    this.#noted.set(name, message);
  }
}
