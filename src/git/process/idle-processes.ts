/** Idle processes that are kept, of all repositories together. */
const MAX_IDLE_PROCESSES = 32;

/** An owner of a long-lived process, or of memory in its place, that it can release while no request waits. */
export interface ProcessOwner {
  releaseProcess(): void;
}

/**
 * The idle processes of all repositories, the one that is idle longest first. Each owner ends its process after a while; with hundreds
 * of repositories that are read one after the other, too many would be open until then.
 */
class IdleProcesses {
  readonly #idle = new Set<ProcessOwner>();

  /** Marks an owner idle. If there are too many, the process that is idle longest is ended. */
  markIdle(owner: ProcessOwner): void {
    this.#idle.delete(owner);
    this.#idle.add(owner);
    if (this.#idle.size <= MAX_IDLE_PROCESSES) return;
    for (const longest of this.#idle) {
      this.#idle.delete(longest);
      longest.releaseProcess();
      return;
    }
  }

  /** Call when the owner has work, or no process any more. */
  markBusy(owner: ProcessOwner): void {
    this.#idle.delete(owner);
  }
}

/** The idle processes of this server or command. */
export const idleProcesses = new IdleProcesses();
