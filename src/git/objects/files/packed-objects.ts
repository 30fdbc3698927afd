import { statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissing, readFolder } from '../../../foundation/files/file-system.ts';
import { LruCache } from '../../../foundation/lru-cache.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import { DamageError, HOW_TO_REPAIR } from '../../errors.ts';
import type { ObjectType, Oid } from '../../git-repository.ts';
import { hashObject } from '../object-id.ts';
import { applyDelta, PackFormatError, readEntry } from './pack-entries.ts';
import { PackIndex } from './pack-index-reader.ts';

/** Git makes chains of 50, and none above 4,095. */
const MAX_CHAIN = 4096;
/** Deltas that are in memory at once, in bytes. */
const MAX_CHAIN_BYTES = 256 * 1024 ** 2;
const CHECKSUM_BYTES = 20;
/** Looks at the packs while other processes replace them. */
const MAX_ATTEMPTS = 5;

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
  readonly #maxBytes: number;
  #packs: ReadonlyMap<string, Pack> = new Map();
  /** By path of the pack and offset. */
  readonly #cache = new LruCache<string, PackedContent>({ maxSize: MAX_CACHE_BYTES });

  /** `maxBytes` is for all packs together, indexes included. */
  constructor(gitDir: string, maxBytes = Number.POSITIVE_INFINITY) {
    this.#folder = join(gitDir, 'objects', 'pack');
    this.#maxBytes = maxBytes;
  }

  /** Reads new indexes and drops those of deleted packs. Throws DamageError, LimitExceeded and Unavailable. */
  async refresh(): Promise<void> {
    await this.#whilePacksStay(() => this.#list());
  }

  /** Throws the error of a missing file if a pack was removed meanwhile. */
  async #list(): Promise<ReadonlyMap<string, Pack>> {
    const packs = new Map<string, Pack>();
    const files = await readFolder(this.#folder);
    if (this.#maxBytes < Number.POSITIVE_INFINITY && this.#sizeOf(files) > this.#maxBytes)
      throw new SluiceError('LimitExceeded', `the packs in ${this.#folder} have more than ${this.#maxBytes} bytes`);
    for (const { name } of files)
      if (name.endsWith('.idx')) packs.set(name, this.#packs.get(name) ?? (await openPack(join(this.#folder, name))));
    this.#packs = packs;
    return packs;
  }

  /** Git puts objects into a new pack before it removes the old one: what was in that is found by looking again. Throws Unavailable. */
  async #whilePacksStay<Result>(look: () => Promise<Result>): Promise<Result> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await look();
      } catch (error) {
        if (!isMissing(error)) throw error;
        if (attempt === MAX_ATTEMPTS)
          throw new SluiceError('Unavailable', `packs in ${this.#folder} are missing, or are replaced all the time`, {
            cause: error,
          });
      }
    }
  }

  #sizeOf(files: readonly { readonly name: string }[]): number {
    const size = (name: string) => statSync(join(this.#folder, name), { throwIfNoEntry: false })?.size ?? 0;
    return files.reduce((sum, { name }) => sum + size(name), 0);
  }

  /** Searches the indexes that were read. */
  has(oid: Oid): boolean {
    const wanted = Buffer.from(oid, 'hex');
    for (const { index } of this.#packs.values()) if (index.find(wanted) !== undefined) return true;
    return false;
  }

  /** Undefined for an object that no pack has, as far as indexes were read and packs still exist. Throws DamageError and LimitExceeded. */
  async read(oid: Oid): Promise<PackedContent | undefined> {
    try {
      return await this.#find(this.#packs, oid);
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  /** As `read` after `refresh`, and undefined only for an object that no pack has. */
  readCurrent(oid: Oid): Promise<PackedContent | undefined> {
    return this.#whilePacksStay(async () => this.#find(await this.#list(), oid));
  }

  /** Throws the error of a missing file if a pack with the object was removed, and no other has it. */
  async #find(packs: ReadonlyMap<string, Pack>, oid: Oid): Promise<PackedContent | undefined> {
    const wanted = Buffer.from(oid, 'hex');
    let failure: unknown;
    for (const pack of packs.values()) {
      const offset = pack.index.find(wanted);
      if (offset === undefined) continue;
      try {
        pack.content ??= readFile(pack.path);
        const found = this.#readAt(pack, await pack.content, offset);
        if (hashObject(found.type, found.data) !== oid) throw new PackFormatError('has other content than its index');
        // The caller may change it.
        return { type: found.type, data: Buffer.from(found.data) };
      } catch (error) {
        pack.content = undefined;
        // Another look may find the object of a pack that was removed, and finds a damaged one again.
        if (failure === undefined || isMissing(error)) failure = explained(error, pack.path);
      }
    }
    if (failure !== undefined) throw failure;
    return undefined;
  }

  /** Readers continue with the packs that they have. */
  clear(): void {
    this.#packs = new Map();
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

async function openPack(path: string): Promise<Pack> {
  return { path: path.replace(/idx$/, 'pack'), index: new PackIndex(await readFile(path), path) };
}

function explained(error: unknown, path: string): unknown {
  if (!(error instanceof PackFormatError)) return error;
  const message = `an object cannot be read: the pack ${path} ${error.message}`;
  if (error.isTooLarge) return new SluiceError('LimitExceeded', message, { cause: error });
  return new DamageError(`${message}. ${HOW_TO_REPAIR}`, error);
}
