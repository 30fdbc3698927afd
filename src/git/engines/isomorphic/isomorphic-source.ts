import fs from 'node:fs';
import git from 'isomorphic-git';
import { messageOf, SluiceError } from '../../../foundation/sluice-error.ts';
import type { GitObject, ObjectStat, ObjectType, Oid } from '../../git-repository.ts';
import { parseCommit } from '../../objects/commit-codec.ts';
import {
  batchTooLarge,
  MAX_BATCH_BYTES,
  MAX_OBJECT_BYTES,
  type ObjectSource,
  objectTooLarge,
} from '../../objects/object-source.ts';
import { targetOfTag } from '../../objects/tag-codec.ts';
import { encodeName, parseTree } from '../../objects/tree-codec.ts';

/** How many tags or commits a specification may pass through on its way to a tree. */
const DEEPEST_TAG = 10;

/** Objects by isomorphic-git, one after the other, with one cache. It has no way to know a size without reading the object. */
export class IsomorphicSource implements ObjectSource {
  readonly #gitDir: string;
  #cache = {};

  constructor(gitDir: string) {
    this.#gitDir = gitDir;
  }

  async readObjects(specifications: readonly string[]): Promise<(GitObject | undefined)[]> {
    const objects: (GitObject | undefined)[] = [];
    let total = 0;
    for (const specification of specifications) {
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
      const object = await this.#resolve(specification);
      stats.push(object === undefined ? undefined : { oid: object.oid, type: object.type, size: object.size });
    }
    return stats;
  }

  /** Drops what was read: packs and their indexes are kept in memory as a whole. */
  close(): void {
    this.#cache = {};
  }

  async #resolve(specification: string): Promise<GitObject | undefined> {
    const colon = specification.indexOf(':');
    if (colon < 0) return this.#read(specification);
    let object = await this.#treeOf(specification.slice(0, colon));
    const path = specification.slice(colon + 1);
    for (const segment of path === '' ? [] : path.split('/')) {
      if (object?.type !== 'tree') return undefined;
      const name = encodeName(segment);
      const entry = parseTree(object.data, object.oid).find(({ rawName }) => rawName === name);
      object = entry === undefined ? undefined : await this.#read(entry.oid);
    }
    return object;
  }

  async #treeOf(oid: Oid): Promise<GitObject | undefined> {
    let object = await this.#read(oid);
    for (let depth = 0; depth < DEEPEST_TAG && object !== undefined && object.type !== 'tree'; depth += 1) {
      if (object.type === 'blob') return undefined;
      const target: string | undefined =
        object.type === 'commit' ? parseCommit(object.data, object.oid).tree : targetOfTag(object.data);
      object = target === undefined ? undefined : await this.#read(target);
    }
    return object;
  }

  async #read(oid: Oid): Promise<GitObject | undefined> {
    try {
      const { type, object } = await git.readObject({
        fs,
        gitdir: this.#gitDir,
        oid,
        format: 'content',
        cache: this.#cache,
      });
      const data = Buffer.from(object as Uint8Array);
      if (data.length > MAX_OBJECT_BYTES) throw objectTooLarge(oid, data.length);
      return { oid, type: type as ObjectType, size: data.length, data };
    } catch (error) {
      if (error instanceof SluiceError) throw error;
      if (error instanceof git.Errors.NotFoundError) return undefined;
      throw new SluiceError('Corrupt', `object ${oid} cannot be read: ${messageOf(error).slice(0, 300)}`, {
        cause: error,
      });
    }
  }
}
