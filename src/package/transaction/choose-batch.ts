import { PackageFolders } from '../index/state/package-folders.ts';
import type { PendingWrite, SharedWrite } from './pending-write.ts';

type Choice = Pick<PendingWrite, 'package' | 'wholePackage' | 'urgent'> & {
  readonly shared?: Pick<SharedWrite, 'group'> | undefined;
};

/** Of so many places in a batch one is kept for creations and edits, however many lifecycle steps wait. */
const EDIT_SHARE = 4;

/**
 * Chooses at most `most` of the waiting writes for one batch. They are independent of each other, so that each can be planned on the
 * state before all of them; only on the main branch they are sequential. Lifecycle steps come first; a quarter of the places is for
 * other writes, and the longest-waiting write is always included.
 *
 * With a write that shares a commit the batch has the waiting ones of its group, up to `mostShared` in all, so that they make one commit.
 */
export function chooseBatch<Write extends Choice>(
  waiting: readonly Write[],
  most: number,
  mostShared: number = most,
): Write[] {
  const chosen = new Set<Write>();
  const packages = new Packages();
  const take = (writes: readonly Write[], upTo: number) => {
    for (const write of writes) {
      if (chosen.size >= upTo) return;
      if (!chosen.has(write) && packages.add(write)) chosen.add(write);
    }
  };
  const steps = waiting.filter(({ urgent }) => urgent);
  const others = waiting.filter(({ urgent }) => !urgent);
  const share = Math.floor(most / EDIT_SHARE);
  take(waiting, Math.min(share, 1));
  take(others, share);
  take(steps, most);
  // A step does not wait for a request as large as may be.
  if (![...chosen].some(({ urgent }) => urgent)) take(others, most);
  const groups = new Set([...chosen].flatMap(({ shared }) => shared?.group ?? []));
  const sharing = groups.size === 0 ? [] : waiting.filter(({ shared }) => shared && groups.has(shared.group));
  take(sharing, Math.max(most, mostShared));
  return [...chosen];
}

/** Packages with a write in a batch. */
class Packages {
  /** By package, whether the write affects the whole package. */
  readonly #writes = new Map<string, boolean>();
  readonly #folders = new PackageFolders();

  /** False, without adding it, if the write depends on an added one. */
  add({ package: name, wholePackage }: Choice): boolean {
    const beside = this.#writes.get(name);
    if (beside !== undefined && (beside || wholePackage)) return false;
    // Nesting of packages is checked when a package is created.
    if (this.#folders.nestedWith(name) !== undefined) return false;
    this.#writes.set(name, wholePackage);
    this.#folders.add(name);
    return true;
  }
}
