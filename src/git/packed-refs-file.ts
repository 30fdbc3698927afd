import { open, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { errnoOf, readFileIfPresent, syncFolder } from './file-system.ts';
import type { Oid, Ref } from './git-repository.ts';
import { PackedRefs } from './packed-refs.ts';
import { locked } from './ref-updates.ts';

/** Rewriting the file takes some ten milliseconds at 30,000 refs. */
const PATIENCE_MS = 300;

/** The `packed-refs` file while its lock is held. Git deletes no ref without that lock. */
export interface LockedPackedRefs {
  readonly refs: PackedRefs;
  /** Replaces the file, durably. */
  replace(refs: readonly Ref[], peeled: ReadonlyMap<string, Oid>): Promise<void>;
}

/** Runs `task` with the lock of `packed-refs` held, in the way Git does. Throws RefConflictError (`locked`) if it stays taken. */
export async function withPackedRefs<T>(gitDir: string, task: (file: LockedPackedRefs) => Promise<T>): Promise<T> {
  const path = join(gitDir, 'packed-refs');
  await takeLock(`${path}.lock`);
  try {
    const refs = PackedRefs.parse((await readFileIfPresent(path)) ?? Buffer.alloc(0));
    return await task({
      refs,
      async replace(next, peeled) {
        const file = await open(`${path}.new`, 'w');
        try {
          await file.writeFile(encode(next, peeled, refs.fullyPeeled));
          await file.sync();
        } finally {
          await file.close();
        }
        await rename(`${path}.new`, path);
        await syncFolder(gitDir);
      },
    });
  } finally {
    await unlink(`${path}.lock`);
  }
}

async function takeLock(path: string): Promise<void> {
  for (let waited = 0; ; waited += 20) {
    try {
      await (await open(path, 'wx')).close();
      return;
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw error;
      if (waited >= PATIENCE_MS) throw locked('packed-refs');
      await delay(20);
    }
  }
}

function encode(refs: readonly Ref[], peeled: ReadonlyMap<string, Oid>, fullyPeeled: boolean): string {
  const lines = [`# pack-refs with: ${fullyPeeled ? 'peeled fully-peeled ' : ''}sorted `];
  for (const { name, oid } of [...refs].sort((a, b) => compareBytes(a.name, b.name))) {
    lines.push(`${oid} ${name}`);
    const target = peeled.get(name);
    if (target !== undefined) lines.push(`^${target}`);
  }
  return `${lines.join('\n')}\n`;
}

/** Git searches the file by the bytes of names. */
function compareBytes(a: string, b: string): number {
  return /^[\x00-\x7f]*$/.test(a + b) ? (a < b ? -1 : 1) : Buffer.compare(Buffer.from(a), Buffer.from(b));
}
