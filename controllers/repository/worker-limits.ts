import type { Repository } from '../../src/resource/kinds/porch/repository.ts';
import { DEFAULT_NAMESPACE, keyOf, keyText, type ObjectKey } from '../../src/resource/object/object.ts';

/** Of the workers of the controller, so that most of them serve repositories whose hosts respond. */
const MAX_SLOW = 40;
const MAX_SLOW_PER_NAMESPACE = 4;
/** First openings by this process of repositories that were read before; each is short, also where the host does not respond. */
const MAX_OPENINGS_PER_NAMESPACE = 32;

/**
 * Limits how many workers are occupied by repositories that may not respond: those that were never read, and those whose last attempt
 * failed. A host that hangs occupies each worker for up to the whole deadline; without a limit the repositories of one namespace could
 * keep those of all others from being opened and synced. A host has no limit of its own: one that most namespaces share could be
 * occupied by any of them.
 */
export class WorkerLimits {
  /** Number of occupied workers: of all, and of each namespace. */
  readonly #occupied = new Map<string, number>();
  readonly #suspect = new Set<string>();

  /** Returns what ends the occupation, or undefined if the repository has to wait. One that is open and responds never has to. */
  occupy(object: Repository, isOpen: boolean): (() => void) | undefined {
    const limits = this.#limitsOf(object, isOpen);
    if (limits.some(([name, most]) => this.#count(name) >= most)) return undefined;
    for (const [name] of limits) this.#occupied.set(name, this.#count(name) + 1);
    return () => {
      for (const [name] of limits) {
        const rest = this.#count(name) - 1;
        if (rest > 0) this.#occupied.set(name, rest);
        else this.#occupied.delete(name);
      }
    };
  }

  /** Records the outcome of an attempt. */
  note(key: ObjectKey, isFailed: boolean): void {
    if (isFailed) this.#suspect.add(keyText(key));
    else this.#suspect.delete(keyText(key));
  }

  /** True if the last attempt failed. */
  isSuspect(key: ObjectKey): boolean {
    return this.#suspect.has(keyText(key));
  }

  #limitsOf(object: Repository, isOpen: boolean): readonly (readonly [string, number])[] {
    const { namespace = DEFAULT_NAMESPACE } = keyOf(object);
    const wasRead = isOpen || object.status?.lastFullSyncTime != null;
    if (wasRead && !this.isSuspect(keyOf(object)))
      return isOpen ? [] : [[`openings ${namespace}`, MAX_OPENINGS_PER_NAMESPACE]];
    return [
      ['all', MAX_SLOW],
      [`namespace ${namespace}`, MAX_SLOW_PER_NAMESPACE],
    ];
  }

  #count(name: string): number {
    return this.#occupied.get(name) ?? 0;
  }
}
