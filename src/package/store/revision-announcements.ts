import { yieldToEventLoop } from '../../foundation/concurrency/in-slices.ts';
import type { IndexChange } from '../index/state/index-delta.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import type { PackageRepository } from './package-repository.ts';

export type RevisionListener = (changes: readonly IndexChange[]) => void;

/** Revisions that are announced at a time, before other work gets its turn: a few milliseconds of work for the listeners. */
const PART_SIZE = 64;
/** A package is announced as a whole unless that makes a part larger than this. */
const MAX_PART_SIZE = 8 * PART_SIZE;

/**
 * Notifies the listeners of a store: revisions of an added or removed repository are announced in parts, and each can be found by
 * readers once it was announced.
 */
export class RevisionAnnouncements {
  readonly #listeners = new Set<RevisionListener>();
  /** Ends waits, by the id of the repository. */
  readonly #awaited = new Map<string, Set<() => void>>();
  /** Names of the revisions that were announced, by the ids of repositories of which not all are. */
  readonly #arriving = new Map<string, Set<string>>();

  /** Notifies the listener of every change from now on, in order, with one call for what changed together. */
  subscribe(listener: RevisionListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Announces the revisions of a repository; false if it was removed in the meantime. Rethrows errors of listeners after all were
   * notified. The first part is announced before this returns.
   */
  async arrive({ id, index }: PackageRepository): Promise<boolean> {
    const announced = new Set<string>();
    this.#arriving.set(id, announced);
    const isArriving = () => this.#arriving.get(id) === announced;
    // As they are now: a change from here on announces a revision whose turn has not come.
    await inParts([...index.all()], (part) => {
      if (!isArriving()) return false;
      const fresh = part.filter((revision) => !announced.has(revision.name));
      for (const revision of fresh) announced.add(revision.name);
      this.#notify(fresh.map((after) => ({ before: undefined, after })));
      return true;
    });
    return isArriving() && this.#arriving.delete(id);
  }

  /** Announces the removal of the announced revisions of a repository to its listeners. */
  async leave(repository: PackageRepository): Promise<void> {
    const revisions = [...this.of(repository)];
    this.#arriving.delete(repository.id);
    // A listener that subscribes later has not been notified of any part.
    const listeners = [...this.#listeners];
    await inParts(revisions, (part) => {
      const changes = part.map((before) => ({ before, after: undefined }));
      this.#notify(
        changes,
        listeners.filter((listener) => this.#listeners.has(listener)),
      );
      return true;
    });
  }

  /** Ends the arrival of all repositories, and returns their ids. */
  abort(): string[] {
    const ids = [...this.#arriving.keys()];
    this.#arriving.clear();
    return ids;
  }

  /** Announces changes of one repository. */
  announce(id: string, changes: readonly IndexChange[]): void {
    const announced = this.#arriving.get(id);
    this.#notify(announced === undefined ? changes : changes.flatMap((change) => asAnnounced(change, announced)));
  }

  /** Waits until a repository has arrived or was removed, at most as long as the signal allows. */
  async next(repository: string, signal: AbortSignal): Promise<void> {
    const waiting = this.#awaited.get(repository) ?? new Set();
    this.#awaited.set(repository, waiting);
    await new Promise<void>((resolve) => {
      const end = () => {
        waiting.delete(end);
        if (waiting.size === 0) this.#awaited.delete(repository);
        signal.removeEventListener('abort', end);
        resolve();
      };
      waiting.add(end);
      signal.addEventListener('abort', end);
    });
  }

  /** Ends the waits for a repository that has arrived or was removed. */
  wake(repository: string): void {
    for (const wake of [...(this.#awaited.get(repository) ?? [])]) wake();
  }

  isArriving(id: string): boolean {
    return this.#arriving.has(id);
  }

  /** True for a revision that was announced to the listeners. */
  has(id: string, name: string): boolean {
    return this.#arriving.get(id)?.has(name) ?? true;
  }

  /** Revisions that the listeners know, of one package if it is named. */
  *of({ id, index }: PackageRepository, packageName?: string): Generator<PackageRevision> {
    const announced = this.#arriving.get(id);
    const rows = packageName === undefined ? index.all() : index.ofPackage(packageName);
    for (const row of rows) if (announced === undefined || announced.has(row.name)) yield row;
  }

  #notify(changes: readonly IndexChange[], listeners: Iterable<RevisionListener> = this.#listeners): void {
    if (changes.length > 0) notifyAll(listeners, changes);
  }
}

/** Notifies all listeners. The first error of one is thrown after all were notified. */
export function notifyAll<Change>(listeners: Iterable<(change: Change) => void>, change: Change): void {
  const errors: unknown[] = [];
  for (const listener of listeners) {
    try {
      listener(change);
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}

/** A change as it is for listeners that know the revisions of `announced`, and now this one. Empty if it is no change for them. */
function asAnnounced(change: IndexChange, announced: Set<string>): IndexChange[] {
  const { before, after } = change;
  const name = (after ?? before)?.name ?? '';
  if (announced.has(name)) return [change];
  announced.add(name);
  return after === undefined ? [] : [{ before: undefined, after }];
}

/**
 * Calls `announce` with one part of the revisions after the other, and yields in between. The first part is announced before this
 * returns. It ends early when `announce` returns false. Errors of `announce` are thrown after the last part.
 */
async function inParts(
  revisions: readonly PackageRevision[],
  announce: (part: readonly PackageRevision[]) => boolean,
): Promise<void> {
  const errors: unknown[] = [];
  for (let start = 0; start < revisions.length; ) {
    if (start > 0) await yieldToEventLoop();
    const end = endOfPart(revisions, start);
    try {
      if (!announce(revisions.slice(start, end))) break;
    } catch (error) {
      errors.push(error);
    }
    start = end;
  }
  if (errors.length > 0) throw errors[0];
}

/** The revisions of a package are usually adjacent. */
function endOfPart(revisions: readonly PackageRevision[], start: number): number {
  const most = Math.min(start + MAX_PART_SIZE, revisions.length);
  let end = Math.min(start + PART_SIZE, most);
  const name = revisions[end - 1]?.key.package;
  while (end < most && revisions[end]?.key.package === name) end += 1;
  return end;
}
