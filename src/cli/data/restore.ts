import { resolve } from 'node:path';
import { createDataFolder, type DataFolder, exists } from '../../app/data/data-folder.ts';
import { ledgerPath } from '../../app/trust/open-trust.ts';
import { ProcessLock } from '../../foundation/files/process-lock.ts';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { systemClock, timestamp } from '../../foundation/time/clock.ts';
import { type CheckedLedger, checkLedgerCopy } from '../../package/trust/sqlite/ledger-backup.ts';
import { readAttachment, restore as restoreDatabase } from '../../resource/storage/sqlite/restore.ts';
import { folderOf } from '../access/place.ts';
import type { CommandResult, DataOptions, Invocation } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { LEDGER_ATTACHMENT } from './backup.ts';

/** Milliseconds to wait for a command that is writing objects. */
const WRITE_TIMEOUT_MS = 10_000;

/** `sluice restore`: refused while `up` runs, and keeps one from starting until it is done. */
export async function restore(file: string, options: DataOptions, invocation: Invocation): Promise<CommandResult> {
  const { terminal, environment } = invocation;
  const folder = folderOf(options, environment);
  const backup = resolve(file);
  if (!(await exists(backup))) throw new SluiceError('NotFound', `there is no file ${backup}`);
  await createDataFolder(folder);
  const since = timestamp(systemClock.now());
  const upLock = await takeUpLock(folder, since);
  try {
    const lock = await ProcessLock.acquire(folder.databaseLock, { holder: { since }, timeoutMs: WRITE_TIMEOUT_MS });
    try {
      const hadObjects = await exists(folder.database);
      const suffix = `.before-restore-${new Date(systemClock.now()).toISOString().replace(/[-:]/g, '')}`;
      const aside = `${folder.database}${suffix}`;
      const ledger = ledgerOf(backup, folder);
      try {
        restoreDatabase({ backup, database: folder.database, aside });
        const path = ledgerPath(folder.path);
        if (ledger?.mergeInto(path, path + suffix) === true)
          terminal.note(`the previous, damaged trust ledger is in ${printable(path + suffix)}`);
      } finally {
        ledger?.remove();
      }
      terminal.line(`${printable(file)} restored into ${printable(folder.path)}`);
      if (hadObjects) terminal.note(`the previous objects are in ${printable(aside)}`);
      return 0;
    } finally {
      await lock.release();
    }
  } finally {
    await upLock.release();
  }
}

/** The trust ledger of a backup, checked before anything changes; undefined for backups of earlier versions. */
function ledgerOf(backup: string, folder: DataFolder): CheckedLedger | undefined {
  const content = readAttachment(backup, LEDGER_ATTACHMENT);
  return content === undefined ? undefined : checkLedgerCopy(content, `${ledgerPath(folder.path)}.restoring`);
}

async function takeUpLock(folder: DataFolder, since: string): Promise<ProcessLock> {
  try {
    return await ProcessLock.acquire(folder.upLock, { holder: { since } });
  } catch (error) {
    if (!isSluiceError(error, 'Busy')) throw error;
    throw new SluiceError('Busy', `stop "sluice up" on ${folder.path} first: ${error.message}`, { cause: error });
  }
}
