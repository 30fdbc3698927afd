import { errnoOf } from '../../foundation/file-system.ts';
import { inSlices } from '../../foundation/in-slices.ts';
import { Mutex } from '../../foundation/mutex.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { LooseObjectWriter } from './loose-object-writer.ts';
import type { NewObject } from './object-source.ts';
import type { StagedObjects } from './staged-objects.ts';

/** So many objects are brought to the disk as one pack: to make a file takes longer than to fill it. */
const PACK_FROM = 40;

/** Brings objects to the disk as a pack. */
export type WritePack = (objects: readonly NewObject[]) => Promise<void>;

/** Takes objects into the stage, and brings what waits there to the disk all at once. */
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

  /** Stages objects, those that others refer to first. When too much waits, it goes to the disk first: if that fails, nothing is added. */
  async add(objects: readonly NewObject[]): Promise<void> {
    this.#checkOpen();
    if (this.#stage.full) await this.flush();
    this.#stage.add(objects);
    if (this.#stage.full) await this.flush();
  }

  /**
   * Makes everything that was added before this call durable. Flushes take turns, so that of several callers at once the first
   * takes along what the others added so far. After an error everything is still staged.
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
   * What is packed already is written too: a pack that nothing refers to may be on its way out, and what is written now is new. Only a
   * loose file, whose time is renewed by looking, is as good.
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
    if (this.#writePack === undefined || objects.length < PACK_FROM) return false;
    try {
      await this.#writePack(objects);
      return true;
    } catch (error) {
      // Files are smaller than a pack of all of them. Anything else is thrown: where packs fail for good, every write would leave dozens
      // of files behind and hide why.
      if (isTooLarge(error)) return false;
      throw error;
    }
  }

  #checkOpen(): void {
    if (this.#closed) throw new SluiceError('Internal', 'the repository is used after close()');
  }
}

/** True if the size of one file is what stops a pack: a limit of the process or of the file system, or of one buffer. */
function isTooLarge(error: unknown): boolean {
  return errnoOf(error instanceof SluiceError ? error.cause : error) === 'EFBIG' || error instanceof RangeError;
}
