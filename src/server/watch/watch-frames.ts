import type { KubernetesObject, Stored } from '../../resource/object/object.ts';
import type { WatchEvent } from '../../resource/storage/storage.ts';
import type { Status } from '../http/status.ts';
import { GenerationCache } from '../presentation/generation-cache.ts';
import type { Presenter, View } from '../presentation/presenter.ts';

type ChangeType = Exclude<WatchEvent<KubernetesObject>['type'], 'BOOKMARK'>;

/** The annotation of the bookmark after the initial events. */
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

/** Bytes of cached frames for each form and type: a burst of a few hundred events. */
const MAX_FRAME_BYTES = 1024 * 1024;

/** The lines of watches. A change is serialised once for all watchers that get it in the same form. */
export class WatchFrames {
  readonly #presenter: Presenter;
  readonly #shared = new Map<string, GenerationCache<Buffer>>();

  constructor(presenter: Presenter) {
    this.#presenter = presenter;
  }

  /** A change as every watcher of this form gets it. */
  change(view: View, type: ChangeType, object: Stored): Buffer {
    const form = `${view.as} ${view.includeObject} ${type}`;
    let frames = this.#shared.get(form);
    if (frames === undefined) {
      frames = new GenerationCache(MAX_FRAME_BYTES, (frame) => frame.length);
      this.#shared.set(form, frames);
    }
    return frames.get(object, () => frameOf(type, this.#presenter.json(view, object, true)));
  }

  /** An object for one watcher: of the state that it begins with, or, with `first`, the line that has the columns of a table. */
  single(view: View, type: ChangeType, object: Stored, first: boolean): Buffer {
    return frameOf(type, this.#presenter.json(view, object, !first));
  }

  bookmark(view: View, resourceVersion: string, endOfInitial: boolean, first: boolean): Buffer {
    const annotations = endOfInitial ? { annotations: { [INITIAL_EVENTS_END]: 'true' } } : {};
    return frameOf('BOOKMARK', this.#presenter.bookmark(view, { resourceVersion, ...annotations }, !first));
  }

  error(status: Status): Buffer {
    return frameOf('ERROR', JSON.stringify(status));
  }
}

function frameOf(type: string, json: string): Buffer {
  return Buffer.from(`{"type":"${type}","object":${json}}\n`);
}
