import type { Oid } from './git-repository.ts';
import { EMPTY_TREE } from './git-repository.ts';
import type { LooseObjectWriter } from './loose-object-writer.ts';
import type { NewObject, ObjectSource } from './object-source.ts';

/** Writes objects that are not there yet, loose or packed. */
export class ObjectStore {
  readonly #source: ObjectSource;
  readonly #writer: LooseObjectWriter;

  constructor(source: ObjectSource, writer: LooseObjectWriter) {
    this.#source = source;
    this.#writer = writer;
  }

  /** Writes objects in the order given (what is referred to first) and skips those that exist. */
  async write(objects: readonly NewObject[]): Promise<void> {
    const unique = [...new Map(objects.map((object) => [object.oid, object])).values()];
    const loose = await Promise.all(unique.map(({ oid }) => this.#writer.has(oid)));
    const candidates = unique.filter((_, index) => !loose[index]);
    if (candidates.length === 0) return;
    const packed = await this.#source.statObjects(candidates.map(({ oid }) => oid));
    // Git knows the empty tree without having it; written, it is there for every other reader too.
    await this.#writer.write(candidates.filter(({ oid }, index) => packed[index] === undefined || oid === EMPTY_TREE));
  }

  async exists(oid: Oid): Promise<boolean> {
    const [stat] = await this.#source.statObjects([oid]);
    return stat !== undefined;
  }
}
