import { join } from 'node:path';
import { readFileIfPresent } from '../../src/foundation/files/file-system.ts';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import { DamageError } from '../../src/git/errors.ts';
import type { MirrorRepair } from '../../src/git/git-repository.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';

/** Pause after a repair of a mirror: it fetches everything, so damage that remains or returns at once has another cause. */
const PAUSE_MS = 3_600_000;
/** Pause after one that failed, as when the Git host was unavailable. */
const FAILED_PAUSE_MS = 60_000;

/** Repairs mirrors when damage is detected. */
export class DamageRepairs {
  readonly #clock: Clock;
  /** When the next repair may begin, in running time. */
  readonly #nextAt = new WeakMap<PackageRepository, number>();
  /** Those whose folder has to be removed before they are fetched again. */
  readonly #beyondRepair = new WeakSet<PackageRepository>();

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
      if (repository.isMirror && !(await hasHead(repository.git.path))) {
        if (this.#beyondRepair.delete(repository)) this.#nextAt.delete(repository);
        throw new DamageError(`the mirror ${repository.git.path} does not exist`);
      }
      return await operation();
    } catch (error) {
      if (!(error instanceof DamageError) || !this.#mayRepair(repository)) throw error;
    }
    this.#beyondRepair.delete(repository);
    let pause = FAILED_PAUSE_MS;
    try {
      onRepair(await repository.repair(signal));
      pause = PAUSE_MS;
    } catch (error) {
      if (isSluiceError(error, 'Corrupt')) {
        pause = PAUSE_MS;
        this.#beyondRepair.add(repository);
      }
      throw error;
    } finally {
      this.#nextAt.set(repository, this.#clock.monotonic() + pause);
    }
    return await operation();
  }

  #mayRepair(repository: PackageRepository): boolean {
    return repository.isMirror && this.#clock.monotonic() >= (this.#nextAt.get(repository) ?? 0);
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
