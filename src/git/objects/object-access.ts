import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { DamageError, HOW_TO_REPAIR } from '../errors.ts';
import type { Commit, FileEntry, GitObject, ObjectStat, Oid, TreeChange, TreeEntry } from '../git-repository.ts';
import { EMPTY_TREE } from '../git-repository.ts';
import { linksOfCommit, parseCommit } from './commit-codec.ts';
import { checkOid, hashObject, isOid } from './object-id.ts';
import { MAX_OBJECT_BYTES, type ObjectSource } from './object-source.ts';
import { checkReadPath } from './paths.ts';
import { targetOfTag } from './tag-codec.ts';
import { decodeEntry, encodeName, entryIn, parseTree } from './tree-codec.ts';
import { diffTrees, listFiles, MAX_LISTED_ENTRIES } from './tree-walk.ts';

/** What a path leads to, or that it is too large to be read. */
type Folder = GitObject | 'unread';

/**
 * The reading half of the port, the same for both engines. It checks specifications, and it distinguishes an absent object from one
 * that cannot be found because the repository is damaged, since mistaking the latter for the former would look like a removal.
 */
export class ObjectAccess {
  readonly #source: ObjectSource;
  readonly #hasLooseFile: (oid: Oid) => Promise<boolean>;

  constructor(source: ObjectSource, hasLooseFile: (oid: Oid) => Promise<boolean>) {
    this.#source = source;
    this.#hasLooseFile = hasLooseFile;
  }

  async readObjects(specifications: readonly string[]): Promise<(GitObject | undefined)[]> {
    for (const specification of specifications) checkSpecification(specification);
    const objects = await this.#source.readObjects(specifications);
    await this.#confirmMissing(specifications.filter((_, index) => objects[index] === undefined));
    return objects;
  }

  async statObjects(specifications: readonly string[]): Promise<(ObjectStat | undefined)[]> {
    for (const specification of specifications) checkSpecification(specification);
    const stats = await this.#source.statObjects(specifications);
    await this.#confirmMissing(specifications.filter((_, index) => stats[index] === undefined));
    return stats;
  }

  async expectObject(oid: Oid): Promise<void> {
    const [stat] = await this.#source.statObjects([checkOid(oid, 'object to look for')]);
    if (stat === undefined) throw unreadable(oid);
  }

  async readCommit(oid: Oid): Promise<Commit> {
    const [object] = await this.readObjects([checkOid(oid, 'commit to read')]);
    if (object?.type === 'commit') return parseCommit(object.data, oid);
    const found = object === undefined ? 'does not exist' : `is a ${object.type}`;
    throw new SluiceError('NotFound', `commit ${oid} ${found}`);
  }

  async readTree(specification: string): Promise<TreeEntry[] | undefined> {
    const [object] = await this.readObjects([specification]);
    return object?.type === 'tree' ? parseTree(object.data, object.oid).map(decodeEntry) : undefined;
  }

  async listFiles(specification: string, limit = MAX_LISTED_ENTRIES): Promise<FileEntry[]> {
    const [stat] = await this.statObjects([specification]);
    if (stat?.type !== 'tree')
      throw new SluiceError('NotFound', `${JSON.stringify(specification.slice(0, 200))} names no tree`);
    return listFiles(this.#source, stat.oid, limit);
  }

  diffTrees(before: Oid | undefined, after: Oid | undefined): Promise<TreeChange[]> {
    const [from, to] = [before ?? EMPTY_TREE, after ?? EMPTY_TREE];
    return diffTrees(this.#source, checkOid(from, 'tree to compare'), checkOid(to, 'tree to compare'));
  }

  /** Throws Corrupt if one of the missing specifications should exist. */
  async #confirmMissing(specifications: readonly string[]): Promise<void> {
    if (specifications.length === 0) return;
    const folders = new Map<string, Promise<Folder | undefined>>();
    await Promise.all(
      specifications.map((specification) => {
        const colon = specification.indexOf(':');
        return colon < 0
          ? this.#confirmNoObject(specification)
          : this.#confirmNoEntry(specification.slice(0, colon), specification.slice(colon + 1), folders);
      }),
    );
  }

  async #confirmNoObject(oid: Oid): Promise<void> {
    if (!(await this.#hasLooseFile(oid))) return;
    // Read again, since it may have been written a moment ago.
    const [stat] = await this.#source.statObjects([oid]);
    if (stat === undefined) throw unreadable(oid);
  }

  /**
   * Follows the path upwards to the tree that determines whether the entry exists; each tree is read once for all paths. Where any user who
   * may push can write what is read, it is not taken for damage: a tag of a file has no entries, and neither has a malformed tree.
   */
  async #confirmNoEntry(root: Oid, path: string, trees: Map<string, Promise<Folder | undefined>>): Promise<void> {
    if (path === '') return this.#confirmNoTree(root);
    const slash = path.lastIndexOf('/');
    const folder = slash < 0 ? '' : path.slice(0, slash);
    const specification = `${root}:${folder}`;
    const read = trees.get(specification) ?? this.#readFolder(specification);
    trees.set(specification, read);
    const tree = await read;
    if (tree === undefined) return this.#confirmNoEntry(root, folder, trees);
    if (tree === 'unread' || tree.type !== 'tree') return;
    const name = encodeName(path.slice(slash + 1));
    const entry = entryIn(tree.data, tree.oid, name);
    if (entry !== undefined && entry.mode !== '160000') throw unreadable(entry.oid);
  }

  async #readFolder(specification: string): Promise<Folder | undefined> {
    try {
      return (await this.#source.readObjects([specification]))[0];
    } catch (error) {
      // No part of Sluice reads a tree of this size, so there is nothing in it to be missed.
      if (isSluiceError(error, 'LimitExceeded')) return 'unread';
      throw error;
    }
  }

  /** Throws Corrupt unless `root` is missing itself, or what it leads to is there and is no tree. */
  async #confirmNoTree(root: Oid): Promise<void> {
    const followed = new Set<Oid>();
    for (let oid: Oid | undefined = root; oid !== undefined && !followed.has(oid); ) {
      followed.add(oid);
      const [stat]: (ObjectStat | undefined)[] = await this.#source.statObjects([oid]);
      if (stat === undefined && oid !== root) throw unreadable(oid);
      if (stat?.type === 'tree' && oid !== root) throw unreadable(`${root}:`);
      if (stat === undefined || stat.type === 'tree' || stat.type === 'blob' || stat.size > MAX_OBJECT_BYTES) return;
      const [object]: (GitObject | undefined)[] = await this.#source.readObjects([oid]);
      if (object === undefined) throw unreadable(oid);
      const { type, data } = object;
      oid = type === 'tag' ? targetOfTag(data) : linksOfCommit(data)?.tree;
      if (oid === undefined && hashObject(type, data) !== object.oid) throw unreadable(object.oid);
    }
  }
}

function checkSpecification(specification: string): void {
  const colon = specification.indexOf(':');
  const oid = colon < 0 ? specification : specification.slice(0, colon);
  if (!isOid(oid))
    throw new SluiceError(
      'InvalidInput',
      `${JSON.stringify(specification.slice(0, 200))} is neither an object id nor <id>:<path>`,
    );
  if (colon >= 0) checkReadPath(specification.slice(colon + 1));
}

function unreadable(what: string): DamageError {
  return new DamageError(`${what} is referred to but cannot be read. ${HOW_TO_REPAIR}`);
}
