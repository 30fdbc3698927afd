import { inSlices } from '../../foundation/concurrency/in-slices.ts';
import { Mutex } from '../../foundation/concurrency/mutex.ts';
import { errnoOf } from '../../foundation/files/file-system.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { LooseObjectWriter } from './loose-object-writer.ts';
import type { NewObject } from './object-source.ts';
import type { StagedObjects } from './staged-objects.ts';

/** From this number on, objects are written as one pack: to create a file takes longer than to fill it. */
const MIN_PACKED_OBJECTS = 40;

/** Writes objects to the disk as a pack. */
export type WritePack = (objects: readonly NewObject[]) => Promise<void>;

/** Stages objects in memory, and writes the staged ones to the disk together. */
export class ObjectStore {
  readonly #stage: StagedObjects;
  readonly #writer: LooseObjectWriter;
  readonly #writePack: WritePack | undefined;
  readonly #queue = new Mutex();
  #closed = false;

  /** Without `writePack`, each object becomes a file, however many there are. */
  constructor(stage: StagedObjects, writer: LooseObjectWriter, writePack: WritePack | undefined) {
    this.#stage = stage;
    this.#writer = writer;
    this.#writePack = writePack;
  }

  /**
   * Stages objects, referenced objects before those that refer to them. If too much is staged, it flushes first: if that fails,
   * nothing is added.
   */
  async add(objects: readonly NewObject[]): Promise<void> {
    this.#checkOpen();
    if (this.#stage.full) await this.flush();
    this.#stage.add(objects);
    if (this.#stage.full) await this.flush();
  }

  /**
   * Makes everything that was added before this call durable. Flushes run one at a time, so that the first of several concurrent
   * callers also writes the objects of the others. After an error everything is still staged.
   */
  flush(): Promise<void> {
    return this.#queue.run(() => this.#flush());
  }

  /** Waits for the flush that runs and drops what no transaction needed. */
  close(): Promise<void> {
    return this.#queue.run(async () => {
      this.#closed = true;
      this.#stage.clear();
    });
  }

  /**
   * Objects in packs are written too: a pack of unreachable objects may be removed soon. An existing loose file suffices, since
   * the check updates its time.
   */
  async #flush(): Promise<void> {
    this.#checkOpen();
    const objects = this.#stage.waiting();
    if (!(await this.#isPacked(objects))) {
      const missing: NewObject[] = [];
      await inSlices(objects, (object) => {
        if (!this.#writer.has(object.oid)) missing.push(object);
      });
      await this.#writer.write(missing);
    }
    await this.#writer.flush();
    this.#stage.onDisk(objects);
  }

  async #isPacked(objects: readonly NewObject[]): Promise<boolean> {
    if (this.#writePack === undefined || objects.length < MIN_PACKED_OBJECTS) return false;
    try {
      await this.#writePack(objects);
      return true;
    } catch (error) {
      // Files are smaller than a pack of all of them. Anything else is thrown: if packs fail permanently, every write would leave dozens
      // of files behind and hide why.
      if (isTooLarge(error)) return false;
      throw error;
    }
  }

  #checkOpen(): void {
    if (this.#closed) throw new SluiceError('Internal', 'the repository was used after close()');
  }
}

/** True if the size of one file is what stops a pack: a limit of the process or of the file system, or of one buffer. */
function isTooLarge(error: unknown): boolean {
  return errnoOf(error instanceof SluiceError ? error.cause : error) === 'EFBIG' || error instanceof RangeError;
}
