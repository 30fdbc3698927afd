import type { Source } from '../../src/controller/source.ts';
import type { IndexChange } from '../../src/package/index/state/index-delta.ts';
import { type PackageRevision, revisionId } from '../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { ObjectKey } from '../../src/resource/object/object.ts';
import { ownersOf } from './plan-variant.ts';

/**
 * The revisions of each owner, by its uid: a variant can own revisions of packages that it named before. It follows the store from its first
 * use on, so that no variant searches all revisions.
 */
export class OwnedRevisions {
  readonly #store: Pick<RevisionStore, 'list' | 'subscribe' | 'find'>;
  readonly #byOwner = new Map<string, Set<string>>();
  #unsubscribe: (() => void) | undefined;

  constructor(store: Pick<RevisionStore, 'list' | 'subscribe' | 'find'>) {
    this.#store = store;
  }

  readonly source: Source<ObjectKey> = {
    start: () => () => {
      this.#unsubscribe?.();
      this.#unsubscribe = undefined;
      this.#byOwner.clear();
    },
  };

  of(uid: string): PackageRevision[] {
    if (this.#unsubscribe === undefined) {
      this.#unsubscribe = this.#store.subscribe((changes) => this.#note(changes));
      this.#note(this.#store.list().map((after) => ({ before: undefined, after })));
    }
    return [...(this.#byOwner.get(uid) ?? [])].flatMap((id) => this.#store.find(id) ?? []);
  }

  #note(changes: readonly IndexChange[]): void {
    for (const { before, after } of changes) {
      if (before !== undefined) for (const uid of uidsOf(before)) this.#remove(uid, revisionId(before));
      if (after === undefined) continue;
      for (const uid of uidsOf(after)) {
        const ids = this.#byOwner.get(uid) ?? new Set();
        this.#byOwner.set(uid, ids.add(revisionId(after)));
      }
    }
  }

  #remove(uid: string, id: string): void {
    const ids = this.#byOwner.get(uid);
    ids?.delete(id);
    if (ids?.size === 0) this.#byOwner.delete(uid);
  }
}

function uidsOf(revision: PackageRevision): string[] {
  return ownersOf(revision).flatMap(({ uid }) => uid ?? []);
}
