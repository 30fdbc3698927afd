import { createHash } from 'node:crypto';
import { inSlices } from '../../../foundation/concurrency/in-slices.ts';
import type { ObjectType, Oid } from '../../git-repository.ts';
import { applyDelta, contentOf, type PackEntry, PackFormatError, readEntry } from '../../objects/files/pack-entries.ts';
import { hashObject } from '../../objects/object-id.ts';

/** 1,000 packages with three revisions each are 29,000 objects. */
export const MAX_PACK_OBJECTS = 500_000;
/** Maximum size in bytes of all inflated objects of a pack; 1,000 packages have some 100 MB. */
const MAX_UNPACKED_BYTES = 8 * 1024 ** 3;
/** Objects that wait in memory for the deltas that apply to them, in bytes. */
const MAX_BASE_BYTES = 512 * 1024 ** 2;
const HEADER_BYTES = 12;
const CHECKSUM_BYTES = 20;

export interface UnpackedObject {
  readonly oid: Oid;
  readonly type: ObjectType;
  readonly data: Buffer;
  readonly entry: PackEntry;
}

/** An object whose deltas are being resolved. */
interface Base {
  readonly type: ObjectType;
  readonly data: Buffer;
  readonly deltas: PackEntry[];
}

/**
 * Calls `onObject` for every object of a pack, each after the base of its delta. Checks the checksum, that the pack is as long as it
 * claims, and that it contains all bases: a thin pack is refused. Throws PackFormatError.
 */
export async function unpack(pack: Buffer, onObject: (object: UnpackedObject) => void): Promise<void> {
  const end = checkFrame(pack);
  let unpacked = 0;
  const account = (bytes: number) => {
    unpacked += bytes;
    if (unpacked > MAX_UNPACKED_BYTES)
      throw new PackFormatError(`has more than ${MAX_UNPACKED_BYTES} bytes when it is unpacked`);
  };
  const report = (type: ObjectType, data: Buffer, entry: PackEntry): Oid => {
    account(data.length);
    const oid = hashObject(type, data);
    onObject({ oid, type, data, entry });
    return oid;
  };
  const byBase = new Map<Oid | number, PackEntry[]>();
  const whole: { readonly entry: PackEntry; readonly type: ObjectType; readonly oid: Oid }[] = [];
  let deltas = 0;
  let at = HEADER_BYTES;
  await inSlices(count(pack.readUInt32BE(8)), () => {
    const { entry, content } = readEntry(pack, at, end);
    at = entry.end;
    if (typeof entry.kind === 'string') {
      whole.push({ entry, type: entry.kind, oid: report(entry.kind, content, entry) });
      return;
    }
    account(entry.size);
    deltas += 1;
    const base = 'offset' in entry.kind ? entry.kind.offset : entry.kind.oid;
    const others = byBase.get(base);
    if (others === undefined) byBase.set(base, [entry]);
    else others.push(entry);
  });
  if (at !== end) throw new PackFormatError('has more objects than it announces');
  await inSlices(resolveAll(), () => undefined);
  if (deltas > 0) throw new PackFormatError(`has ${deltas} deltas without their base`);

  /** Takes one step for each delta, depth first, so that only the bases of one chain are in memory. */
  function* resolveAll(): Generator<void> {
    for (const { entry, type, oid } of whole) {
      const own = takeDeltas(entry.offset, oid);
      if (own.length === 0) continue;
      const chain: Base[] = [{ type, data: contentOf(pack, entry), deltas: own }];
      let held = entry.size;
      for (let base = chain.at(-1); base !== undefined; base = chain.at(-1)) {
        const delta = base.deltas.pop();
        if (delta === undefined) {
          chain.pop();
          held -= base.data.length;
          continue;
        }
        const data = applyDelta(base.data, contentOf(pack, delta));
        deltas -= 1;
        const next = takeDeltas(delta.offset, report(type, data, delta));
        if (next.length > 0) {
          chain.push({ type, data, deltas: next });
          held += data.length;
          if (held > MAX_BASE_BYTES) throw new PackFormatError('has chains of deltas that are too large');
        }
        yield;
      }
    }
  }

  /** The deltas that apply to an object, each of them once. */
  function takeDeltas(offset: number, oid: Oid): PackEntry[] {
    const found = [...(byBase.get(offset) ?? []), ...(byBase.get(oid) ?? [])];
    byBase.delete(offset);
    byBase.delete(oid);
    return found;
  }
}

/** Returns where the entries end. */
function checkFrame(pack: Buffer): number {
  const end = pack.length - CHECKSUM_BYTES;
  if (end < HEADER_BYTES || pack.toString('latin1', 0, 4) !== 'PACK') throw new PackFormatError('is cut off');
  const version = pack.readUInt32BE(4);
  if (version !== 2) throw new PackFormatError(`has the version ${version}, which is not known`);
  const objects = pack.readUInt32BE(8);
  if (objects > MAX_PACK_OBJECTS)
    throw new PackFormatError(`has ${objects} objects; at most ${MAX_PACK_OBJECTS} are read without git`);
  if (!createHash('sha1').update(pack.subarray(0, end)).digest().equals(pack.subarray(end)))
    throw new PackFormatError('does not match its checksum');
  return end;
}

function* count(total: number): Generator<number> {
  for (let number = 0; number < total; number += 1) yield number;
}
