import { mkdir, open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { removeFile, syncFolder } from '../../../foundation/files/file-system.ts';
import { diskError, requireFreeSpace } from '../../disk/disk-room.ts';
import type { NewObject } from '../../objects/object-source.ts';
import { encodePackIndex } from '../../objects/pack/pack-index.ts';
import { writePack } from '../../objects/pack/pack-writer.ts';

let lastNumber = 0;

/** Writes objects, each of them once, as a pack with its index. */
export async function writePackFile(gitDir: string, objects: readonly NewObject[], durable: boolean): Promise<void> {
  requireFreeSpace(gitDir);
  const { bytes, offsets } = await writePack(objects);
  await placePack(gitDir, bytes, encodePackIndex(objects, bytes, offsets), durable);
}

/**
 * Writes a pack and its index into the repository. Both are complete and, if `durable`, synced before they are renamed to their
 * final names. The index is last, since Git finds the pack by it: a crash leaves at most temporary files, which nothing reads.
 */
export async function placePack(gitDir: string, bytes: Buffer, index: Buffer, durable: boolean): Promise<void> {
  requireFreeSpace(gitDir, bytes.length + index.length);
  const folder = join(gitDir, 'objects', 'pack');
  lastNumber += 1;
  const unique = `${process.pid}_${process.hrtime.bigint()}_${lastNumber}`;
  // Git removes leftovers of these names too.
  const temporary = { pack: join(folder, `tmp_pack_${unique}`), idx: join(folder, `tmp_idx_${unique}`) };
  try {
    await mkdir(folder, { recursive: true });
    const checksum = bytes.subarray(-20);
    await Promise.all([write(temporary.pack, bytes, durable), write(temporary.idx, index, durable)]);
    for (const part of ['pack', 'idx'] as const)
      await rename(temporary[part], join(folder, `pack-${checksum.toString('hex')}.${part}`));
    if (durable) await syncFolder(folder);
  } catch (error) {
    await Promise.all(Object.values(temporary).map(removeFile));
    throw diskError(error, gitDir) ?? error;
  }
}

async function write(path: string, data: Uint8Array, durable: boolean): Promise<void> {
  const file = await open(path, 'wx', 0o444);
  try {
    await file.writeFile(data);
    if (durable) await file.sync();
  } finally {
    await file.close();
  }
}
