import {
  accessSync,
  closeSync,
  constants,
  fsync,
  openSync,
  renameSync,
  statSync,
  utimesSync,
  writeFile,
  writeFileSync,
} from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { deflate, deflateSync } from 'node:zlib';
import { inSlices } from '../../foundation/concurrency/in-slices.ts';
import { mapLimited } from '../../foundation/concurrency/map-limited.ts';
import { errnoOf, removeFile, syncFolder } from '../../foundation/files/file-system.ts';
import { diskError, requireFreeSpace } from '../disk/disk-room.ts';
import type { Oid } from '../git-repository.ts';
import { objectHeader } from './object-id.ts';
import type { NewObject } from './object-source.ts';

const deflateInBackground = promisify(deflate);
const writeInBackground = promisify(writeFile);
const sync = promisify(fsync);
/** Size above which compressing would block the event loop for too long. */
const BACKGROUND_BYTES = 32 * 1024;
/** Speed before size: maintenance packs the objects anyway. */
const COMPRESSION_LEVEL = 1;
const MAX_ATTEMPTS = 10;
/** Files that are written in parallel: each waits for the disk. */
const MAX_OPEN_FILES = 8;

let lastNumber = 0;
function nextNumber(): number {
  lastNumber += 1;
  return lastNumber;
}

/**
 * Writes loose objects as Git does: a temporary file in the object's folder, fsync, rename. A crash leaves at most temporary files,
 * which nothing reads. Objects are renamed to their final names in the given order, so that an existing object never refers to a
 * missing one.
 */
export class LooseObjectWriter {
  readonly #objects: string;
  readonly #durable: boolean;
  readonly #folders = new SyncedFolders();

  constructor(gitDir: string, durable = true) {
    this.#objects = join(gitDir, 'objects');
    this.#durable = durable;
  }

  /**
   * True if the object exists as a loose file. Updates the time of the file, as Git does, so that a garbage collection
   * that runs at this moment keeps it.
   */
  has(oid: Oid): boolean {
    try {
      const now = new Date();
      utimesSync(this.#path(oid), now, now);
      // A crash of the machine may leave the name of a file without its contents; it is written again.
      return statSync(this.#path(oid)).size > 0;
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return false;
      if (errnoOf(error) === 'EPERM' || errnoOf(error) === 'EACCES') return this.#canRead(oid);
      throw error;
    }
  }

  /** Writes objects; those that an object refers to must come before it. */
  async write(objects: readonly NewObject[]): Promise<void> {
    if (objects.length === 0) return;
    requireFreeSpace(this.#objects);
    const files = new Map<Oid, string>();
    try {
      await mapLimited(objects, MAX_OPEN_FILES, async (object) => {
        files.set(object.oid, await this.#writeTemporary(object));
      });
      await inSlices(objects, ({ oid }) => this.#name(files, oid));
    } catch (error) {
      await mapLimited([...files.values()], MAX_OPEN_FILES, removeFile);
      throw diskError(error, this.#objects) ?? error;
    }
  }

  /** Makes the names of all objects written so far durable. Returns when the disk has them. */
  flush(): Promise<void> {
    return this.#folders.flush();
  }

  /** Gives a temporary file the name of its object. */
  #name(files: Map<Oid, string>, oid: Oid): void {
    const file = files.get(oid);
    if (file === undefined) return;
    renameSync(file, this.#path(oid));
    files.delete(oid);
    if (this.#durable) this.#folders.add(this.#folder(oid));
  }

  async #writeTemporary({ oid, type, data }: NewObject): Promise<string> {
    const content = Buffer.concat([objectHeader(type, data.length), data]);
    const compressed =
      content.length > BACKGROUND_BYTES
        ? await deflateInBackground(content, { level: COMPRESSION_LEVEL })
        : deflateSync(content, { level: COMPRESSION_LEVEL });
    // Git removes leftovers of this name too.
    const file = join(this.#folder(oid), `tmp_obj_${process.pid}_${process.hrtime.bigint()}_${nextNumber()}`);
    const descriptor = await this.#create(file, oid);
    try {
      // The system copies a small file at once; a large one may have to wait for the disk.
      if (compressed.length > BACKGROUND_BYTES) await writeInBackground(descriptor, compressed);
      else writeFileSync(descriptor, compressed);
      if (this.#durable) await sync(descriptor);
    } catch (error) {
      await removeFile(file);
      throw error;
    } finally {
      closeSync(descriptor);
    }
    return file;
  }

  /** Creates a file in the folder of an object. Git removes such folders when they become empty, also at this moment. */
  async #create(file: string, oid: Oid): Promise<number> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return openSync(file, 'wx', 0o444);
      } catch (error) {
        if (errnoOf(error) !== 'ENOENT' || attempt === MAX_ATTEMPTS) throw error;
        await mkdir(this.#folder(oid), { recursive: true });
        if (this.#durable) this.#folders.add(this.#objects);
      }
    }
  }

  #canRead(oid: Oid): boolean {
    try {
      accessSync(this.#path(oid), constants.R_OK);
      return true;
    } catch {
      // Absent or not readable: writing it again throws the right error, or repairs it.
      return false;
    }
  }

  #folder(oid: Oid): string {
    return join(this.#objects, oid.slice(0, 2));
  }

  #path(oid: Oid): string {
    return join(this.#objects, oid.slice(0, 2), oid.slice(2));
  }
}

/** Folders in which names changed. Until a folder is synced, a power cut may take the new names back. */
class SyncedFolders {
  #changed = new Set<string>();

  add(folder: string): void {
    this.#changed.add(folder);
  }

  async flush(): Promise<void> {
    const folders = [...this.#changed];
    this.#changed = new Set();
    try {
      await mapLimited(folders, 8, syncFolder);
    } catch (error) {
      for (const folder of folders) this.#changed.add(folder);
      throw error;
    }
  }
}
