import { join } from 'node:path';
import type { Clock } from '../../src/foundation/clock.ts';
import { elapsed } from '../../src/foundation/elapsed.ts';
import { readFileIfPresent } from '../../src/foundation/file-system.ts';
import { DamageError } from '../../src/git/errors.ts';
import type { MirrorRepair } from '../../src/git/git-repository.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';

/** A repair fetches everything; what comes again at once is nothing that fetching mends. */
const PAUSE = 3_600_000;

/** Makes mirrors whole when damage comes to light. */
export class DamageRepairs {
  readonly #clock: Clock;
  readonly #lastAt = new WeakMap<PackageRepository, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Looks at a repository. A mirror that is damaged, or turns out to be while it is looked at, is repaired, and looked at then. */
  async around<Result>(
    repository: PackageRepository,
    look: () => Promise<Result>,
    signal: AbortSignal,
    onRepair: (repair: MirrorRepair) => void,
  ): Promise<Result> {
    try {
      // Whoever read something may have met it since the last look.
      if (repository.git.damage !== undefined && this.#mayRepair(repository)) throw repository.git.damage;
      if (repository.isMirror && !(await isThere(repository.git.path)))
        throw new DamageError(`the mirror ${repository.git.path} is gone`);
      return await look();
    } catch (error) {
      if (!(error instanceof DamageError) || !this.#mayRepair(repository)) throw error;
      this.#lastAt.set(repository, this.#clock.now());
    }
    onRepair(await repository.repair(signal));
    return await look();
  }

  #mayRepair(repository: PackageRepository): boolean {
    const last = this.#lastAt.get(repository);
    return repository.isMirror && (last === undefined || elapsed(this.#clock.now(), last, PAUSE));
  }
}

async function isThere(path: string): Promise<boolean> {
  return (await readFileIfPresent(join(path, 'HEAD'))) !== undefined;
}

/** For people. */
export function repairMessage({ damaged }: MirrorRepair): string {
  const what = damaged.length === 0 ? 'something was missing' : `put aside: ${damaged.slice(0, 10).join(', ')}`;
  return `the mirror was damaged and was fetched anew; ${what}`;
}
