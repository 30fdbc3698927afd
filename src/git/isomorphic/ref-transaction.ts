import type { FileHandle } from 'node:fs/promises';
import { readdir, rename, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { errnoOf, isMissing, removeFile } from '../file-system.ts';
import type { ObjectStat, Oid, RefUpdate } from '../git-repository.ts';
import { type LockedPackedRefs, withPackedRefs } from '../packed-refs-file.ts';
import type { RefFiles } from '../ref-files.ts';
import { lockRef, removeEmptyParents, unlockRef } from '../ref-lock.ts';
import { ancestors, collision, expectedValue, moved, newValue } from '../ref-updates.ts';

interface Locked {
  readonly update: RefUpdate;
  readonly file: FileHandle;
}

/**
 * A ref transaction in the manner of Git's files: every ref is locked and compared before the first one changes. The lock of
 * `packed-refs` is held throughout and serves as the lock of the whole repository.
 */
export class RefTransaction {
  readonly #gitDir: string;
  readonly #refs: RefFiles;
  readonly #statObjects: (specifications: readonly string[]) => Promise<(ObjectStat | undefined)[]>;

  constructor(
    gitDir: string,
    refs: RefFiles,
    statObjects: (specifications: readonly string[]) => Promise<(ObjectStat | undefined)[]>,
  ) {
    this.#gitDir = gitDir;
    this.#refs = refs;
    this.#statObjects = statObjects;
  }

  /** Applies checked updates, all or none. Throws RefConflictError, or NotFound or InvalidInput for a new value that cannot be. */
  async run(updates: readonly RefUpdate[]): Promise<void> {
    await this.#checkTargets(updates);
    await withPackedRefs(this.#gitDir, async (packed) => {
      const locks: Locked[] = [];
      try {
        for (const update of updates) {
          this.#compare(update, packed);
          if (expectedValue(update) === null) await this.#checkNames(update, packed);
          locks.push({ update, file: await lockRef(this.#gitDir, update.ref) });
          // Again, now that no process that keeps to Git's protocol can change it.
          this.#compare(update, packed);
        }
        for (const lock of locks) await this.#prepare(lock);
        await this.#commit(updates, packed);
      } finally {
        for (const { update, file } of locks) {
          await file.close();
          await unlockRef(this.#gitDir, update.ref);
          if (newValue(update) === null) await removeEmptyParents(this.#gitDir, update.ref);
        }
      }
    });
  }

  async #checkTargets(updates: readonly RefUpdate[]): Promise<void> {
    const targets = updates.flatMap((update) => ('new' in update ? [{ ref: update.ref, oid: update.new }] : []));
    const stats = await this.#statObjects(targets.map(({ oid }) => oid));
    for (const [index, { ref, oid }] of targets.entries()) {
      const type = stats[index]?.type;
      if (type === undefined)
        throw new SluiceError('NotFound', `${ref} cannot point to ${oid}: there is no such object. Write it first`);
      if (ref.startsWith('refs/heads/') && type !== 'commit')
        throw new SluiceError('InvalidInput', `${ref} cannot point to ${oid}: a branch needs a commit`);
    }
  }

  /** Refuses a ref that would be the folder of another one, or the other way round. */
  async #checkNames({ ref }: RefUpdate, packed: LockedPackedRefs): Promise<void> {
    for (const name of ancestors(ref)) if (this.#current(name, packed) !== null) throw collision(ref, name);
    const [below] = [...packed.refs.withPrefix(`${ref}/`), ...(await this.#refs.listLoose(`${ref}/`))];
    if (below !== undefined) throw collision(ref, below.name);
  }

  #compare(update: RefUpdate, packed: LockedPackedRefs): void {
    const current = this.#current(update.ref, packed);
    if (current === 'symbolic')
      throw new SluiceError('Unsupported', `${update.ref} is a symbolic ref: it is not changed here`);
    const expected = expectedValue(update);
    if (current !== expected) throw moved(update.ref, expected, current);
  }

  #current(ref: string, packed: LockedPackedRefs): Oid | 'symbolic' | null {
    return this.#refs.readLoose(ref) ?? packed.refs.get(ref) ?? null;
  }

  /** Puts the new value, durably, into the lock file that will become the ref. */
  async #prepare({ update, file }: Locked): Promise<void> {
    if (!('new' in update)) return;
    await clearTheWay(this.#gitDir, update.ref);
    await file.writeFile(`${update.new}\n`);
    await file.sync();
  }

  /** New values before removals, as Git does it: what is still wanted is never without a ref. */
  async #commit(updates: readonly RefUpdate[], packed: LockedPackedRefs): Promise<void> {
    for (const update of updates) {
      const path = join(this.#gitDir, update.ref);
      if ('new' in update) await rename(`${path}.lock`, path);
    }
    const removed = new Set(updates.filter(({ type }) => type === 'delete').map(({ ref }) => ref));
    if (removed.size === 0) return;
    const all = packed.refs.withPrefix('refs/');
    const kept = all.filter(({ name }) => !removed.has(name));
    if (kept.length < all.length) {
      const peeled = new Map([...packed.refs.peeled].filter(([name]) => !removed.has(name)));
      await packed.replace(kept, peeled);
    }
    for (const ref of removed) await removeFile(join(this.#gitDir, ref));
  }
}

/** Removes folders in place of a ref in which no ref is left. Throws Corrupt if something else is in them. */
async function clearTheWay(gitDir: string, ref: string): Promise<void> {
  const path = join(gitDir, ref);
  try {
    for (const entry of await readdir(path, { withFileTypes: true }))
      if (entry.isDirectory()) await clearTheWay(gitDir, `${ref}/${entry.name}`);
    await rmdir(path);
  } catch (error) {
    if (errnoOf(error) === 'ENOTEMPTY' || errnoOf(error) === 'EEXIST')
      throw new SluiceError('Corrupt', `${path} is a folder with files that are no refs: remove them to use the name`);
    if (!isMissing(error)) throw error;
  }
}
