/** Of all repositories together so many processes are kept that nobody uses at the moment. */
const MOST = 32;

/** Something that has a process open, and can let go of it while nobody waits for it. */
export interface KeepsProcess {
  letGo(): void;
}

/**
 * The processes of all repositories that are kept open without work, the one that rests longest first. Each is ended after a while by
 * itself; with hundreds of repositories that were read one after the other, so many would be open at once till then.
 */
class IdleProcesses {
  readonly #resting = new Set<KeepsProcess>();

  /** Has rested from now on. The one that has rested longest is let go if there are too many. */
  rests(owner: KeepsProcess): void {
    this.#resting.delete(owner);
    this.#resting.add(owner);
    if (this.#resting.size <= MOST) return;
    for (const longest of this.#resting) {
      this.#resting.delete(longest);
      longest.letGo();
      return;
    }
  }

  /** Is at work, or has no process any more. */
  restsNoMore(owner: KeepsProcess): void {
    this.#resting.delete(owner);
  }
}

/** Those of this process. */
export const idleProcesses = new IdleProcesses();
