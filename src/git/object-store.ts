import { SluiceError } from '../foundation/sluice-error.ts';
import { EMPTY_TREE } from './git-repository.ts';
import { inSlices } from './in-slices.ts';
import type { LooseObjectWriter } from './loose-object-writer.ts';
import type { NewObject, ObjectSource } from './object-source.ts';
import { SerialQueue } from './serial-queue.ts';
import type { StagedObjects } from './staged-objects.ts';

/** Takes objects into the stage, and brings what waits there to the disk all at once. */
export class ObjectStore {
  readonly #stage: StagedObjects;
  readonly #source: ObjectSource;
  readonly #writer: LooseObjectWriter;
  readonly #queue = new SerialQueue();
  #closed = false;

  /** `source` reads the repository itself, without the stage. */
  constructor(stage: StagedObjects, source: ObjectSource, writer: LooseObjectWriter) {
    this.#stage = stage;
    this.#source = source;
    this.#writer = writer;
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

  async #flush(): Promise<void> {
    this.#checkOpen();
    const objects = this.#stage.waiting();
    if (objects.length > 0) await this.#writer.write(await this.#missing(objects));
    await this.#writer.flush();
    this.#stage.onDisk(objects);
  }

  /** Those that are neither loose nor packed. */
  async #missing(objects: readonly NewObject[]): Promise<NewObject[]> {
    const candidates: NewObject[] = [];
    await inSlices(objects, (object) => {
      if (!this.#writer.has(object.oid)) candidates.push(object);
    });
    if (candidates.length === 0) return [];
    const packed = await this.#source.statObjects(candidates.map(({ oid }) => oid));
    // Git knows the empty tree without having it; written, it is there for every other reader too.
    return candidates.filter(({ oid }, index) => packed[index] === undefined || oid === EMPTY_TREE);
  }

  #checkOpen(): void {
    if (this.#closed) throw new SluiceError('Internal', 'the repository is used after close()');
  }
}
