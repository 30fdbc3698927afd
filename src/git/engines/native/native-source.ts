import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { inflateSync } from 'node:zlib';
import type { GitObject, ObjectStat, ObjectType } from '../../git-repository.ts';
import { FileSource, type ReadLoose } from '../../objects/files/file-source.ts';
import { PackedObjects } from '../../objects/files/packed-objects.ts';
import { hashOf } from '../../objects/object-id.ts';
import type { ObjectSource } from '../../objects/object-source.ts';
import { idleProcesses, type ProcessOwner } from '../../process/idle-processes.ts';
import type { CatFile } from './cat-file.ts';

/** Objects of one call; git reads more of them faster. */
const MAX_OBJECTS = 64;
/** Of all packs with their indexes, which are read as a whole. */
const MAX_PACK_BYTES = 256 * 1024;
/** Of a loose object, compressed and not: it is read while the event loop waits. */
const MAX_LOOSE_BYTES = 64 * 1024;
const MAX_INFLATED_BYTES = 1024 * 1024;

/**
 * Reads a few objects of a small repository from its files while no `git cat-file` runs for it, everything else by that. To start a process,
 * the system copies the page tables of this one, which takes some ten milliseconds of the event loop, and as long again when they are removed:
 * too long for each of a thousand repositories that are read now and then. What is returned has the id that was requested; whatever cannot be
 * read here, git reads, or reports why it cannot be read.
 */
export class NativeSource implements ObjectSource, ProcessOwner {
  readonly #catFile: CatFile;
  readonly #packed: PackedObjects;
  readonly #files: FileSource;
  readonly #alternates: string;
  readonly #hasQuarantine: boolean;

  constructor(gitDir: string, catFile: CatFile, hasQuarantine: boolean) {
    this.#alternates = join(gitDir, 'objects/info/alternates');
    this.#hasQuarantine = hasQuarantine;
    this.#catFile = catFile;
    this.#packed = new PackedObjects(gitDir, MAX_PACK_BYTES);
    this.#files = new FileSource(this.#packed, looseReader(gitDir));
  }

  readObjects(specifications: readonly string[]): Promise<(GitObject | undefined)[]> {
    return this.#read(
      specifications,
      () => this.#files.readObjects(specifications),
      () => this.#catFile.contents(specifications),
    );
  }

  statObjects(specifications: readonly string[]): Promise<(ObjectStat | undefined)[]> {
    return this.#read(
      specifications,
      () => this.#files.statObjects(specifications),
      () => this.#catFile.info(specifications),
    );
  }

  /** What is kept of the files is read again by the next call. */
  renew(): void {
    this.#packed.clear();
    this.#catFile.renew();
  }

  releaseProcess(): void {
    this.#packed.clear();
  }

  close(): void {
    idleProcesses.markBusy(this);
    this.#packed.clear();
    this.#catFile.close();
  }

  async #read<Result>(
    specifications: readonly string[],
    fromFiles: () => Promise<(Result | undefined)[]>,
    fromGit: () => Promise<(Result | undefined)[]>,
  ): Promise<(Result | undefined)[]> {
    if (this.#catFile.isStarted || specifications.length > MAX_OBJECTS) return fromGit();
    idleProcesses.markIdle(this);
    const found = await fromFiles().catch(() => undefined);
    // What is not in this repository may be elsewhere.
    const isAll = found !== undefined && (!found.includes(undefined) || !this.#hasOthers());
    return isAll ? found : fromGit();
  }

  #hasOthers(): boolean {
    return this.#hasQuarantine || existsSync(this.#alternates);
  }
}

/** Throws for a large object, and for one with another content than its name says. */
function looseReader(gitDir: string): ReadLoose {
  return async (oid) => {
    const path = join(gitDir, 'objects', oid.slice(0, 2), oid.slice(2));
    const file = statSync(path, { throwIfNoEntry: false });
    if (file === undefined) return undefined;
    if (file.size > MAX_LOOSE_BYTES) throw new RangeError(`object ${oid} is large`);
    const stored = inflateSync(readFileSync(path), { maxOutputLength: MAX_INFLATED_BYTES });
    if (hashOf(stored) !== oid) throw new RangeError(`the file of object ${oid} has another content`);
    const end = stored.indexOf(0);
    const [type = ''] = stored.toString('latin1', 0, end).split(' ', 1);
    return { type: type as ObjectType, data: stored.subarray(end + 1) };
  };
}
