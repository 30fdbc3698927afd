import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import { requireFreeSpace } from '../../disk/disk-room.ts';
import { EMPTY_TREE, type Oid } from '../../git-repository.ts';
import { linksOfCommit } from '../../objects/commit-codec.ts';
import { PackFormatError } from '../../objects/files/pack-entries.ts';
import type { PackedObjects } from '../../objects/files/packed-objects.ts';
import { encodePackIndex } from '../../objects/pack/pack-index.ts';
import { targetOfTag } from '../../objects/tag-codec.ts';
import { linksOfTree } from '../../objects/tree-codec.ts';
import { placePack } from '../native/pack-file.ts';
import { MAX_PACK_OBJECTS, type UnpackedObject, unpack } from './unpack.ts';

/** The largest pack that is received without git, in bytes: it is in memory as a whole. 1,000 packages take some 15 MB. */
export const MAX_PACK_BYTES = 256 * 1024 ** 2;
/** Ids of objects outside of a pack that those in it refer to. */
const MAX_LINKS = 4 * MAX_PACK_OBJECTS;

export interface StorePackOptions {
  readonly gitDir: string;
  readonly packed: PackedObjects;
  readonly durable: boolean;
  readonly signal: AbortSignal;
  /** Lowered by tests. */
  readonly maxBytes?: number;
}

/**
 * Stores a received pack, as `git index-pack --check-self-contained-and-connected` does. Every object in it must be readable, and
 * every object that it refers to must be in the pack or in the repository. Everything is checked before anything is written; then
 * pack and index are written, synced and renamed, the index last. Throws the error of reading the pack, the signal's reason,
 * Unavailable for a pack that cannot be used, and LimitExceeded.
 */
export async function storePack(pieces: AsyncIterable<Uint8Array>, options: StorePackOptions): Promise<void> {
  const { gitDir, packed, durable, signal } = options;
  signal.throwIfAborted();
  requireFreeSpace(gitDir);
  const pack = await collect(pieces, options);
  try {
    const { objects, links } = await readObjects(pack, signal);
    // A remote without new objects sends an empty pack.
    if (objects.length === 0) return;
    await packed.refresh();
    const missing = links.find((oid) => !packed.has(oid) && !existsSync(loosePath(gitDir, oid)));
    if (missing !== undefined) throw new PackFormatError(`lacks the object ${missing}, which the repository lacks too`);
    const offsets = objects.map(({ offset }) => offset);
    await placePack(gitDir, pack, encodePackIndex(objects, pack, offsets), durable);
  } catch (error) {
    const isBad = error instanceof PackFormatError || (error instanceof SluiceError && error.code === 'Corrupt');
    if (!isBad) throw error;
    const cause = error instanceof PackFormatError ? `it ${error.message}` : error.message;
    throw new SluiceError('Unavailable', `cannot use the pack that a remote sent: ${cause}`, { cause: error });
  }
}

async function collect(pieces: AsyncIterable<Uint8Array>, options: StorePackOptions): Promise<Buffer> {
  const { signal, maxBytes = MAX_PACK_BYTES } = options;
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const piece of pieces) {
    signal.throwIfAborted();
    size += piece.length;
    if (size > maxBytes)
      throw new SluiceError(
        'LimitExceeded',
        `cannot receive a pack of more than ${maxBytes} bytes without git: install git 2.39 or later`,
      );
    parts.push(piece);
  }
  signal.throwIfAborted();
  return Buffer.concat(parts, size);
}

interface ReadObjects {
  /** In the order in which they are in the pack. */
  readonly objects: readonly { readonly oid: Oid; readonly offset: number }[];
  /** Objects that they refer to and that are not among them. */
  readonly links: readonly Oid[];
}

async function readObjects(pack: Buffer, signal: AbortSignal): Promise<ReadObjects> {
  const offsets = new Map<Oid, number>();
  const links = new Set<Oid>();
  await unpack(pack, (object) => {
    signal.throwIfAborted();
    if (offsets.has(object.oid)) throw new PackFormatError(`has the object ${object.oid} twice`);
    offsets.set(object.oid, object.entry.offset);
    for (const oid of linksOf(object)) links.add(oid);
    if (links.size > MAX_LINKS) throw new PackFormatError('refers to too many objects');
  });
  const objects = [...offsets].map(([oid, offset]) => ({ oid, offset })).sort((a, b) => a.offset - b.offset);
  return { objects, links: [...links].filter((oid) => oid !== EMPTY_TREE && !offsets.has(oid)) };
}

/**
 * The objects that an object refers to. Any user who may push can write a tree in the wrong order, or a commit with endless headers, and servers
 * accept it: it must not keep the rest from being received. Throws Corrupt and PackFormatError for data without readable ids.
 */
function linksOf({ oid, type, data }: UnpackedObject): readonly Oid[] {
  if (type === 'blob') return [];
  if (type === 'tree') return linksOfTree(data, oid);
  if (type === 'commit') {
    const links = linksOfCommit(data);
    if (links === undefined) throw new PackFormatError(`has the damaged commit ${oid}`);
    return [links.tree, ...links.parents];
  }
  const target = targetOfTag(data);
  if (target === undefined) throw new PackFormatError(`has the damaged tag ${oid}`);
  return [target];
}

function loosePath(gitDir: string, oid: Oid): string {
  return join(gitDir, 'objects', oid.slice(0, 2), oid.slice(2));
}
