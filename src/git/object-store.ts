import { SluiceError } from '../foundation/sluice-error.ts';
import { inSlices } from './in-slices.ts';
import type { LooseObjectWriter } from './loose-object-writer.ts';
import type { NewObject } from './object-source.ts';
import { SerialQueue } from './serial-queue.ts';
import type { StagedObjects } from './staged-objects.ts';

/** Takes objects into the stage, and brings what waits there to the disk all at once. */
export class ObjectStore {
  readonly #stage: StagedObjects;
  readonly #writer: LooseObjectWriter;
  readonly #queue = new SerialQueue();
  #closed = false;

  constructor(stage: StagedObjects, writer: LooseObjectWriter) {
    this.#stage = stage;
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

  /**
   * What is packed already is written too: a pack that nothing refers to may be on its way out, and what is written now is new. Only a
   * loose file, whose time is renewed by looking, is as good.
   */
  async #flush(): Promise<void> {
    this.#checkOpen();
    const objects = this.#stage.waiting();
    const missing: NewObject[] = [];
    await inSlices(objects, (object) => {
      if (!this.#writer.has(object.oid)) missing.push(object);
    });
    await this.#writer.write(missing);
    await this.#writer.flush();
    this.#stage.onDisk(objects);
  }

  #checkOpen(): void {
    if (this.#closed) throw new SluiceError('Internal', 'the repository is used after close()');
  }
}
