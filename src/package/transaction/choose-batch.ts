import { PackageFolders } from '../index/state/package-folders.ts';
import type { PendingWrite } from './pending-write.ts';

type Choice = Pick<PendingWrite, 'package' | 'wholePackage' | 'urgent'>;

/** Of so many places in a batch one is kept for creations and edits, however many lifecycle steps wait. */
const EDIT_SHARE = 4;

/**
 * The writes that go out together, at most `most`, from those that wait in the order in which they came. They are independent of each
 * other, so that each may be judged on the state before all of them; only on the main branch they follow each other. Lifecycle steps
 * come first; beside them a quarter of the places is for the rest, and the one that waits longest is always among them.
 */
export function chooseBatch<Write extends Choice>(waiting: readonly Write[], most: number): Write[] {
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
  return [...chosen];
}

/** Packages with a write in a batch. */
class Packages {
  /** By package, whether the write concerns it as a whole. */
  readonly #writes = new Map<string, boolean>();
  readonly #folders = new PackageFolders();

  /** False, and nothing is added, if the write depends on one that was added. */
  add({ package: name, wholePackage }: Choice): boolean {
    const beside = this.#writes.get(name);
    if (beside !== undefined && (beside || wholePackage)) return false;
    // Whether there may be a package within another is judged when one comes into being.
    if (this.#folders.nestedWith(name) !== undefined) return false;
    this.#writes.set(name, wholePackage);
    this.#folders.add(name);
    return true;
  }
}
