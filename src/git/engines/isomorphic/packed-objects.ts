import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissing, readFolder } from '../../../foundation/files/file-system.ts';
import { LruCache } from '../../../foundation/lru-cache.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { ObjectType, Oid } from '../../git-repository.ts';
import { hashObject } from '../../objects/object-id.ts';
import { applyDelta, PackFormatError, readEntry } from './pack-entries.ts';
import { PackIndex } from './pack-index-reader.ts';

/** Git makes chains of 50, and none above 4,095. */
const MAX_CHAIN = 4096;
/** Deltas that are in memory at once, in bytes. */
const MAX_CHAIN_BYTES = 256 * 1024 ** 2;
const CHECKSUM_BYTES = 20;

/** Size in bytes of the cache of objects, which are mostly bases of deltas. */
const MAX_CACHE_BYTES = 48 * 1024 ** 2;
const MAX_CACHED_OBJECT_BYTES = 1024 ** 2;

interface Pack {
  readonly path: string;
  readonly index: PackIndex;
  /** Read with the first object. */
  content?: Promise<Buffer> | undefined;
}

interface PackedContent {
  readonly type: ObjectType;
  readonly data: Buffer;
}

/**
 * The objects in the packs of a repository, with indexes and packs in memory. isomorphic-git reads them too, but looks for a loose file
 * and lists the folder of the packs for each object, which takes 50 times as long, and inflates without a limit.
 */
export class PackedObjects {
  readonly #folder: string;
  #packs = new Map<string, Pack>();
  /** By path of the pack and offset. */
  readonly #cache = new LruCache<string, PackedContent>({ maxSize: MAX_CACHE_BYTES });

  constructor(gitDir: string) {
    this.#folder = join(gitDir, 'objects', 'pack');
  }

  /** Reads new indexes and drops those of deleted packs. */
  async refresh(): Promise<void> {
    const packs = new Map<string, Pack>();
    for (const { name } of await readFolder(this.#folder)) {
      if (!name.endsWith('.idx')) continue;
      const path = join(this.#folder, name);
      const pack = this.#packs.get(name) ?? (await openPack(path));
      if (pack !== undefined) packs.set(name, pack);
    }
    this.#packs = packs;
  }

  /** Searches the indexes that were read. */
  has(oid: Oid): boolean {
    const wanted = Buffer.from(oid, 'hex');
    for (const { index } of this.#packs.values()) if (index.find(wanted) !== undefined) return true;
    return false;
  }

  /** Undefined for an object that no pack has, as far as indexes were read. Throws Corrupt and LimitExceeded. */
  async read(oid: Oid): Promise<PackedContent | undefined> {
    const wanted = Buffer.from(oid, 'hex');
    let failure: unknown;
    for (const [name, pack] of this.#packs) {
      const offset = pack.index.find(wanted);
      if (offset === undefined) continue;
      try {
        pack.content ??= readFile(pack.path);
        const found = this.#readAt(pack, await pack.content, offset);
        if (hashObject(found.type, found.data) !== oid) throw new PackFormatError('has other content than its index');
        // The caller may change it.
        return { type: found.type, data: Buffer.from(found.data) };
      } catch (error) {
        // Maintenance by git has put its objects into another pack.
        if (isMissing(error)) this.#packs.delete(name);
        else pack.content = undefined;
        failure ??= isMissing(error) ? undefined : explained(error, pack.path);
      }
    }
    if (failure !== undefined) throw failure;
    return undefined;
  }

  clear(): void {
    this.#packs.clear();
    this.#cache.clear();
  }

  #readAt(pack: Pack, content: Buffer, offset: number): PackedContent {
    const limit = content.length - CHECKSUM_BYTES;
    const deltas: { readonly at: number; readonly bytes: Buffer }[] = [];
    let bytesOfDeltas = 0;
    let at = offset;
    let found = this.#cache.get(keyOf(pack, at));
    while (found === undefined) {
      const { entry, content: bytes } = readEntry(content, at, limit);
      if (typeof entry.kind === 'string') {
        found = this.#keep(pack, at, { type: entry.kind, data: bytes });
        break;
      }
      deltas.push({ at, bytes });
      bytesOfDeltas += bytes.length;
      if (deltas.length > MAX_CHAIN || bytesOfDeltas > MAX_CHAIN_BYTES)
        throw new PackFormatError('has a chain of deltas that is too long', true);
      const base = 'offset' in entry.kind ? entry.kind.offset : pack.index.find(Buffer.from(entry.kind.oid, 'hex'));
      if (base === undefined) throw new PackFormatError('has a delta without its base');
      at = base;
      found = this.#cache.get(keyOf(pack, at));
    }
    for (let delta = deltas.pop(); delta !== undefined; delta = deltas.pop())
      found = this.#keep(pack, delta.at, { type: found.type, data: applyDelta(found.data, delta.bytes) });
    return found;
  }

  #keep(pack: Pack, offset: number, content: PackedContent): PackedContent {
    const { length } = content.data;
    if (length <= MAX_CACHED_OBJECT_BYTES) this.#cache.set(keyOf(pack, offset), content, length);
    return content;
  }
}

function keyOf({ path }: Pack, offset: number): string {
  return `${offset} ${path}`;
}

/** Undefined if it was removed meanwhile. */
async function openPack(path: string): Promise<Pack | undefined> {
  try {
    return { path: path.replace(/idx$/, 'pack'), index: new PackIndex(await readFile(path), path) };
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

function explained(error: unknown, path: string): unknown {
  if (!(error instanceof PackFormatError)) return error;
  const code = error.isTooLarge ? 'LimitExceeded' : 'Corrupt';
  return new SluiceError(code, `an object cannot be read: the pack ${path} ${error.message}`, { cause: error });
}
