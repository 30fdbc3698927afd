import { join } from 'node:path';
import { readFileIfPresent } from '../../src/foundation/files/file-system.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import { DamageError } from '../../src/git/errors.ts';
import type { MirrorRepair } from '../../src/git/git-repository.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';

/** Pause between two repairs of a mirror: a repair fetches everything, so damage that returns at once has another cause. */
const PAUSE_MS = 3_600_000;

/** Repairs mirrors when damage is detected. */
export class DamageRepairs {
  readonly #clock: Clock;
  /** In running time. */
  readonly #lastAt = new WeakMap<PackageRepository, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Runs `operation`. A mirror that is damaged, or proves to be while it runs, is repaired, and the operation runs again. */
  async around<Result>(
    repository: PackageRepository,
    operation: () => Promise<Result>,
    signal: AbortSignal,
    onRepair: (repair: MirrorRepair) => void,
  ): Promise<Result> {
    try {
      // A reader may have detected damage since the last sync.
      if (repository.git.damage !== undefined && this.#mayRepair(repository)) throw repository.git.damage;
      if (repository.isMirror && !(await hasHead(repository.git.path)))
        throw new DamageError(`the mirror ${repository.git.path} does not exist`);
      return await operation();
    } catch (error) {
      if (!(error instanceof DamageError) || !this.#mayRepair(repository)) throw error;
      this.#lastAt.set(repository, this.#clock.monotonic());
    }
    onRepair(await repository.repair(signal));
    return await operation();
  }

  #mayRepair(repository: PackageRepository): boolean {
    const last = this.#lastAt.get(repository);
    return repository.isMirror && (last === undefined || this.#clock.monotonic() - last >= PAUSE_MS);
  }
}

async function hasHead(path: string): Promise<boolean> {
  return (await readFileIfPresent(join(path, 'HEAD'))) !== undefined;
}

/** The text of the event. */
export function repairMessage({ damaged }: MirrorRepair): string {
  const what = damaged.length === 0 ? 'files were missing' : `moved aside: ${damaged.slice(0, 10).join(', ')}`;
  return `the mirror was damaged and was fetched again; ${what}`;
}
