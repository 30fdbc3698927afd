import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { inSlices } from '../../foundation/concurrency/in-slices.ts';
import { mapLimited } from '../../foundation/concurrency/map-limited.ts';
import { firstFileBelow, removeFile, syncFolder } from '../../foundation/files/file-system.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { diskError } from '../disk/disk-room.ts';
import { RefConflictError } from '../errors.ts';
import type { Oid, RefUpdate } from '../git-repository.ts';
import type { ObjectSource } from '../objects/object-source.ts';
import { peelTags } from '../objects/peel-tags.ts';
import { isRefName } from '../ref-name.ts';
import type { PackedRefs } from './packed-refs.ts';
import { type LockedPackedRefs, withPackedRefs } from './packed-refs-file.ts';
import type { RefFiles } from './ref-files.ts';
import { lockRef, removeEmptyParents, unlockRef } from './ref-lock.ts';
import { ancestors, collisionError, expectedValue, lockedError, movedError, newValue } from './ref-updates.ts';

/** The time that Git waits for locks of refs, which are held only briefly. */
const LOCK_TIMEOUT_MS = 100;
const LOCK_RETRY_MS = 10;

/** The state of a ref whose lock is held. */
interface LockedRef {
  readonly update: RefUpdate;
  readonly isLoose: boolean;
}

/**
 * A ref transaction in Git's formats and with Git's locks, whose outcome is one new `packed-refs` file: it needs one or two syncs however
 * many refs change, and no crash leaves a part of it.
 *
 * A loose file counts before the packed line. So refs that change and have one are first packed with the value that they have; from
 * then on the file has all values, and replacing it changes all at once.
 */
export class RefTransaction {
  readonly #refs: RefFiles;
  readonly #source: ObjectSource;
  readonly #durable: boolean;

  constructor(refs: RefFiles, source: ObjectSource, durable = true) {
    this.#refs = refs;
    this.#source = source;
    this.#durable = durable;
  }

  /**
   * Applies checked updates, all or none. Throws RefConflictError, NotFound or InvalidInput for an impossible new value, and
   * Unsupported for a symbolic ref.
   */
  async run(updates: readonly RefUpdate[]): Promise<void> {
    const peeled = await this.#checkTargets(updates);
    for (let waited = 0; ; waited += LOCK_RETRY_MS) {
      try {
        return await this.#locked(updates, () =>
          withPackedRefs(this.#refs, this.#durable, (packed) => this.#apply(updates, peeled, packed)),
        );
      } catch (error) {
        if (!isRefLocked(error) || waited >= LOCK_TIMEOUT_MS) throw diskError(error, this.#refs.gitDir) ?? error;
        await delay(LOCK_RETRY_MS);
      }
    }
  }

  /** Runs `task` while no process that keeps to Git's protocol changes the refs. */
  async #locked(updates: readonly RefUpdate[], task: () => Promise<void>): Promise<void> {
    const { gitDir } = this.#refs;
    const taken: string[] = [];
    let emptied: readonly string[] = taken;
    try {
      await inSlices(updates, ({ ref }) => {
        this.#expectFolders(ref);
        lockRef(gitDir, ref, taken[0]);
        taken.push(ref);
      });
      await task();
      emptied = updates.filter((update) => !staysBranch(update)).map(({ ref }) => ref);
    } finally {
      await inSlices(taken, (ref) => unlockRef(gitDir, ref));
      removeEmptyParents(gitDir, emptied);
    }
  }

  async #apply(
    updates: readonly RefUpdate[],
    peeled: ReadonlyMap<string, Oid>,
    packed: LockedPackedRefs,
  ): Promise<void> {
    const found: LockedRef[] = [];
    await inSlices(updates, (update) => found.push(this.#compare(update, packed.refs)));
    const changed = found.filter(({ update }) => update.type !== 'verify');
    const refs = await this.#packLoose(
      changed.filter(({ isLoose }) => isLoose),
      packed,
    );
    const names = new RefNameCheck(this.#refs, refs);
    const lastLook = () => {
      for (const update of updates) if (expectedValue(update) === null) names.expectFree(update.ref);
    };
    if (changed.length === 0) return lastLook();
    const values = new Map(changed.map(({ update }) => [update.ref, newValue(update)]));
    await packed.replace(refs.with(values, peeled), lastLook);
  }

  /** Packs loose refs, and returns the packed refs. A crash in between changes no value. */
  async #packLoose(loose: readonly LockedRef[], packed: LockedPackedRefs): Promise<PackedRefs> {
    if (loose.length === 0) return packed.refs;
    const { gitDir } = this.#refs;
    const values = new Map(loose.map(({ update }) => [update.ref, expectedValue(update)]));
    const refs = packed.refs.with(values, await peelTags(this.#source, values));
    await packed.replace(refs);
    for (const ref of values.keys()) await removeFile(join(gitDir, ref));
    const folders = new Set([...values.keys()].map((ref) => join(gitDir, dirname(ref))));
    // Otherwise a power cut might restore an old value beside a new packed one.
    if (this.#durable) await mapLimited([...folders], 8, syncFolder);
    return refs;
  }

  /** Returns what the new values that are annotated tags point to. */
  async #checkTargets(updates: readonly RefUpdate[]): Promise<ReadonlyMap<string, Oid>> {
    const targets = new Map(updates.flatMap((update) => ('new' in update ? [[update.ref, update.new]] : [])));
    const stats = await this.#source.statObjects([...targets.values()]);
    const tags = new Map<string, Oid>();
    for (const [index, [ref, oid]] of [...targets].entries()) {
      const type = stats[index]?.type;
      if (type === undefined)
        throw new SluiceError('NotFound', `${ref} cannot point to ${oid}: there is no such object. Write it first`);
      if (ref.startsWith('refs/heads/') && type !== 'commit')
        throw new SluiceError('InvalidInput', `${ref} cannot point to ${oid}: a branch needs a commit`);
      if (type === 'tag') tags.set(ref, oid);
    }
    return peelTags(this.#source, tags);
  }

  #compare(update: RefUpdate, packed: PackedRefs): LockedRef {
    const loose = this.#refs.readLoose(update.ref);
    if (loose === 'symbolic')
      throw new SluiceError('Unsupported', `${update.ref} is a symbolic ref: it is not changed here`);
    const current = loose ?? packed.get(update.ref) ?? null;
    const expected = expectedValue(update);
    if (current !== expected) throw movedError(update.ref, expected, current);
    return { update, isLoose: loose !== undefined };
  }

  /** The lock of a ref is a file beside it: its folder cannot have the name of a ref. */
  #expectFolders(ref: string): void {
    for (const name of ancestors(ref)) {
      const found = statSync(join(this.#refs.gitDir, name), { throwIfNoEntry: false });
      if (found === undefined) return;
      if (!found.isDirectory()) throw collisionError(ref, name);
    }
  }
}

/**
 * A draft changes again soon, and to make a folder for its lock takes many times as long as the lock. Folders of what stays as it is are
 * not kept: there are too many of them.
 */
function staysBranch({ type, ref }: RefUpdate): boolean {
  return type !== 'delete' && ref.startsWith('refs/heads/');
}

/** Not for the lock of packed-refs: that wait is over already, and was much longer. */
function isRefLocked(error: unknown): boolean {
  const conflict = error instanceof RefConflictError ? error.details : undefined;
  return conflict?.kind === 'locked' && conflict.ref !== 'packed-refs';
}

/** Checks which names are free for new refs. */
class RefNameCheck {
  readonly #refs: RefFiles;
  readonly #packed: PackedRefs;
  /** Names that were found to be no ref, and to become none. */
  readonly #folders = new Set<string>();

  constructor(refs: RefFiles, packed: PackedRefs) {
    this.#refs = refs;
    this.#packed = packed;
  }

  /**
   * Refuses a ref that would be the folder of another one, or the other way round, also of one that another writer is about to create. Synchronous:
   * no other code may run between the check and the change.
   */
  expectFree(ref: string): void {
    const { gitDir } = this.#refs;
    for (const name of ancestors(ref)) {
      if (this.#folders.has(name)) continue;
      if (this.#packed.get(name) !== undefined || this.#refs.readLoose(name) !== undefined)
        throw collisionError(ref, name);
      if (statSync(join(gitDir, `${name}.lock`), { throwIfNoEntry: false }) !== undefined) throw lockedError(name);
      this.#folders.add(name);
    }
    const [packed] = this.#packed.withPrefix(`${ref}/`);
    if (packed !== undefined) throw collisionError(ref, packed.name);
    const file = firstFileBelow(gitDir, ref);
    if (file === undefined) return;
    if (file.endsWith('.lock')) throw lockedError(file.slice(0, -'.lock'.length));
    if (isRefName(file)) throw collisionError(ref, file);
    throw new SluiceError(
      'Corrupt',
      `${join(gitDir, ref)} is a folder with files that are no refs: remove them to use the name`,
    );
  }
}
