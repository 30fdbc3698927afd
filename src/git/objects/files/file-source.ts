import { createPacer } from '../../../foundation/concurrency/in-slices.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import { EMPTY_TREE, type GitObject, type ObjectStat, type ObjectType, type Oid } from '../../git-repository.ts';
import { linksOfCommit } from '../commit-codec.ts';
import { isOid } from '../object-id.ts';
import { batchTooLarge, MAX_BATCH_BYTES, type ObjectSource } from '../object-source.ts';
import { targetOfTag } from '../tag-codec.ts';
import { encodeName, entryIn } from '../tree-codec.ts';
import type { PackedObjects } from './packed-objects.ts';

/** Maximum number of tags and commits between a specification and its tree. */
const MAX_TAG_DEPTH = 10;

/** A loose object; undefined if there is none of this id. */
export type ReadLoose = (oid: Oid) => Promise<{ readonly type: ObjectType; readonly data: Buffer } | undefined>;

/**
 * Objects, one after the other, read from Git's files in this process. No size is known without reading the object. Specifications are object
 * ids and `<id>:<path>`. Throws for others, and for an object that may exist but cannot be read, also because packs are being replaced.
 */
export class FileSource implements ObjectSource {
  readonly #packed: PackedObjects;
  readonly #readLoose: ReadLoose;
  /** Of all calls together: reading from memory never waits for I/O, and neither does a caller that reads one object after the other. */
  readonly #pause = createPacer();

  constructor(packed: PackedObjects, readLoose: ReadLoose) {
    this.#packed = packed;
    this.#readLoose = readLoose;
  }

  async readObjects(specifications: readonly string[]): Promise<(GitObject | undefined)[]> {
    const objects: (GitObject | undefined)[] = [];
    let total = 0;
    for (const specification of specifications) {
      await this.#pause();
      const object = await this.#resolve(specification);
      total += object?.size ?? 0;
      if (total > MAX_BATCH_BYTES) throw batchTooLarge();
      objects.push(object);
    }
    return objects;
  }

  async statObjects(specifications: readonly string[]): Promise<(ObjectStat | undefined)[]> {
    const stats: (ObjectStat | undefined)[] = [];
    for (const specification of specifications) {
      await this.#pause();
      const object = await this.#resolve(specification);
      stats.push(object === undefined ? undefined : { oid: object.oid, type: object.type, size: object.size });
    }
    return stats;
  }

  async #resolve(specification: string): Promise<GitObject | undefined> {
    const colon = specification.indexOf(':');
    if (colon < 0) return this.#read(specification);
    let object = await this.#treeOf(specification.slice(0, colon));
    const path = specification.slice(colon + 1);
    for (const segment of path === '' ? [] : path.split('/')) {
      if (object?.type !== 'tree') return undefined;
      const entry = entryIn(object.data, object.oid, encodeName(segment));
      object = entry === undefined ? undefined : await this.#read(entry.oid);
    }
    return object;
  }

  async #treeOf(oid: string): Promise<GitObject | undefined> {
    let object = await this.#read(oid);
    for (let depth = 0; depth < MAX_TAG_DEPTH && object !== undefined && object.type !== 'tree'; depth += 1) {
      if (object.type === 'blob') return undefined;
      const target: string | undefined =
        object.type === 'commit' ? linksOfCommit(object.data)?.tree : targetOfTag(object.data);
      object = target === undefined ? undefined : await this.#read(target);
    }
    return object;
  }

  async #read(oid: string): Promise<GitObject | undefined> {
    if (!isOid(oid)) throw new SluiceError('Internal', `${JSON.stringify(oid.slice(0, 200))} is not an object id`);
    if (oid === EMPTY_TREE) return { oid, type: 'tree', size: 0, data: Buffer.alloc(0) };
    const known = (await this.#packed.read(oid)) ?? (await this.#readLoose(oid));
    // Written meanwhile, or moved by git in another process: from loose to a pack, from pack to pack, or from a pack that is removed to loose.
    const found = known ?? (await this.#packed.readCurrent(oid)) ?? (await this.#readLoose(oid));
    return found === undefined ? undefined : { oid, size: found.data.length, ...found };
  }
}
