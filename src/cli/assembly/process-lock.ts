import { randomUUID } from 'node:crypto';
import { link, readFile, rename, unlink, writeFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { isMissing } from '../../git/file-system.ts';
import { mayBeRunning, ownIdentity } from './process-identity.ts';

const holderSchema = z.object({
  host: z.string(),
  pid: z.int().positive(),
  started: z.string(),
  /** RFC 3339. */
  since: z.string(),
  token: z.string(),
  /** What the holder wants others to know. */
  about: z.unknown().optional(),
});

export type LockHolder = Readonly<z.infer<typeof holderSchema>>;

export interface LockRequest {
  /** RFC 3339, for the message to those who come later. */
  readonly since: string;
  readonly about?: unknown;
  /** Milliseconds to wait for a holder that runs. Default 0. */
  readonly patience?: number;
}

const RETRY_INTERVAL = 5;

/**
 * A file that one process holds at a time. It appears complete (a link to a file that is written) and names its holder; a holder
 * that has ended, kill -9 included, loses it to the next who asks.
 */
export class ProcessLock {
  readonly #path: string;
  readonly #token: string;

  private constructor(path: string, token: string) {
    this.#path = path;
    this.#token = token;
  }

  /** Takes the lock. Throws Busy, with the holder as details, if another process keeps it. */
  static async acquire(path: string, request: LockRequest): Promise<ProcessLock> {
    const { since, about, patience = 0 } = request;
    const token = randomUUID();
    const temporary = `${path}.${token}`;
    const holder = { ...(await ownIdentity()), since, token, ...(about === undefined ? {} : { about }) };
    await writeFile(temporary, JSON.stringify(holder), { mode: 0o600, flag: 'wx' });
    try {
      for (let waited = 0; ; waited += RETRY_INTERVAL) {
        if (await linked(temporary, path)) return new ProcessLock(path, token);
        const other = await readHolder(path);
        if (other === 'absent') continue;
        if (other === 'unreadable' || !(await mayBeRunning(other))) {
          await removeStale(path, other);
          continue;
        }
        if (waited >= patience) throw held(path, other);
        await pause(RETRY_INTERVAL);
      }
    } finally {
      await unlink(temporary);
    }
  }

  /** True while nobody has taken the file away. */
  async isHeld(): Promise<boolean> {
    const holder = await readHolder(this.#path);
    return typeof holder === 'object' && holder.token === this.#token;
  }

  async release(): Promise<void> {
    if (await this.isHeld()) await unlink(this.#path);
  }
}

/** Who holds a lock; undefined if nobody does. */
export async function lockHolder(path: string): Promise<LockHolder | undefined> {
  const holder = await readHolder(path);
  return typeof holder === 'object' && (await mayBeRunning(holder)) ? holder : undefined;
}

async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

async function readHolder(path: string): Promise<LockHolder | 'absent' | 'unreadable'> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (isMissing(error)) return 'absent';
    throw error;
  }
  try {
    return holderSchema.parse(JSON.parse(text));
  } catch {
    // Not written by us in one piece, so nobody holds it by it.
    return 'unreadable';
  }
}

/**
 * Takes away the lock of a process that has ended. Between reading and renaming somebody else may have done the same and taken the
 * lock; what was renamed is looked at again, and given back if it is another one.
 */
async function removeStale(path: string, stale: LockHolder | 'unreadable'): Promise<void> {
  const aside = `${path}.${randomUUID()}`;
  try {
    await rename(path, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  const found = await readHolder(aside);
  const same = typeof found === 'object' && typeof stale === 'object' ? found.token === stale.token : found === stale;
  if (!same) await linked(aside, path);
  await unlink(aside);
}

function held(path: string, holder: LockHolder): SluiceError<LockHolder> {
  const where = holder.host === '' ? '' : ` on ${holder.host}`;
  return new SluiceError(
    'Busy',
    `process ${holder.pid}${where} holds ${path} since ${holder.since}; wait until it has ended, or stop it (if that machine is gone, remove the file)`,
    { details: holder },
  );
}
