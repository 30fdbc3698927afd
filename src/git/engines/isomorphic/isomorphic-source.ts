import fs, { statSync } from 'node:fs';
import { join } from 'node:path';
import git from 'isomorphic-git';
import { createPacer } from '../../../foundation/concurrency/in-slices.ts';
import { messageOf, SluiceError } from '../../../foundation/sluice-error.ts';
import { EMPTY_TREE, type GitObject, type ObjectStat, type ObjectType, type Oid } from '../../git-repository.ts';
import { parseCommit } from '../../objects/commit-codec.ts';
import {
  batchTooLarge,
  MAX_BATCH_BYTES,
  MAX_OBJECT_BYTES,
  type ObjectSource,
  objectTooLarge,
} from '../../objects/object-source.ts';
import { targetOfTag } from '../../objects/tag-codec.ts';
import { encodeName, pickEntries } from '../../objects/tree-codec.ts';
import type { PackedObjects } from './packed-objects.ts';

/** Maximum number of tags and commits between a specification and its tree. */
const MAX_TAG_DEPTH = 10;

/** Objects, one after the other: those in packs by PackedObjects, loose ones by isomorphic-git. No size is known without reading the object. */
export class IsomorphicSource implements ObjectSource {
  readonly #gitDir: string;
  readonly #packed: PackedObjects;

  constructor(gitDir: string, packed: PackedObjects) {
    this.#gitDir = gitDir;
    this.#packed = packed;
  }

  async readObjects(specifications: readonly string[]): Promise<(GitObject | undefined)[]> {
    const objects: (GitObject | undefined)[] = [];
    let total = 0;
    // Reading from memory never waits for I/O.
    const pause = createPacer();
    for (const specification of specifications) {
      await pause();
      const object = await this.#resolve(specification);
      total += object?.size ?? 0;
      if (total > MAX_BATCH_BYTES) throw batchTooLarge();
      objects.push(object);
    }
    return objects;
  }

  async statObjects(specifications: readonly string[]): Promise<(ObjectStat | undefined)[]> {
    const stats: (ObjectStat | undefined)[] = [];
    const pause = createPacer();
    for (const specification of specifications) {
      await pause();
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
      const name = encodeName(segment);
      const entry = pickEntries(object.data, object.oid, new Set([name])).get(name);
      object = entry === undefined ? undefined : await this.#read(entry.oid);
    }
    return object;
  }

  async #treeOf(oid: Oid): Promise<GitObject | undefined> {
    let object = await this.#read(oid);
    for (let depth = 0; depth < MAX_TAG_DEPTH && object !== undefined && object.type !== 'tree'; depth += 1) {
      if (object.type === 'blob') return undefined;
      const target: string | undefined =
        object.type === 'commit' ? parseCommit(object.data, object.oid).tree : targetOfTag(object.data);
      object = target === undefined ? undefined : await this.#read(target);
    }
    return object;
  }

  async #read(oid: Oid): Promise<GitObject | undefined> {
    if (oid === EMPTY_TREE) return { oid, type: 'tree', size: 0, data: Buffer.alloc(0) };
    const known = (await this.#packed.read(oid)) ?? (await this.#readLoose(oid));
    if (known !== undefined) return { oid, size: known.data.length, ...known };
    // Written meanwhile, or packed by git in another process.
    await this.#packed.refresh();
    const found = await this.#packed.read(oid);
    return found === undefined ? undefined : { oid, size: found.data.length, ...found };
  }

  async #readLoose(oid: Oid): Promise<{ type: ObjectType; data: Buffer } | undefined> {
    // isomorphic-git would look into the packs next.
    const file = statSync(join(this.#gitDir, 'objects', oid.slice(0, 2), oid.slice(2)), { throwIfNoEntry: false });
    if (file === undefined) return undefined;
    try {
      const { type, object } = await git.readObject({ fs, gitdir: this.#gitDir, oid, format: 'content', cache: {} });
      const data = Buffer.from(object as Uint8Array);
      if (data.length > MAX_OBJECT_BYTES) throw objectTooLarge(oid, data.length);
      return { type: type as ObjectType, data };
    } catch (error) {
      if (error instanceof SluiceError) throw error;
      if (error instanceof git.Errors.NotFoundError) return undefined;
      throw new SluiceError('Corrupt', `object ${oid} cannot be read: ${messageOf(error).slice(0, 300)}`, {
        cause: error,
      });
    }
  }
}
