import type { EventType } from '../../src/controller/event-recorder.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { PullFailure } from '../../src/package/transaction/refusal-notes.ts';
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

  constructor(store: Pick<RevisionStore, 'find' | 'repositoryOf'>, events: Events) {
    this.#store = store;
    this.#events = events;
  }

  report(object: KubernetesObject, message: string): void {
    this.#events.record(object, 'Warning', REASON, message, TOPIC);
    noteFailure(this.#store, keyOf(object), REASON, message);
  }

  /** The host accepted everything. */
  end(key: ObjectKey): void {
    this.#events.forgetTopic(key, TOPIC);
    noteFailure(this.#store, key, REASON, undefined);
  }
}

/** Notes a failure for `sluice why`, or its end; each time, since a note is about one commit. */
export function noteFailure(
  store: Pick<RevisionStore, 'find' | 'repositoryOf'>,
  key: ObjectKey,
  reason: PullFailure,
  message: string | undefined,
): void {
  const revision = store.find(keyText(key));
  if (revision !== undefined) store.repositoryOf(revision).refusals.noteFailure(revision.name, reason, message);
}
