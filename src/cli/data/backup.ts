import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { exists, expectDataFolder } from '../../app/data/data-folder.ts';
import { ledgerPath } from '../../app/trust/open-trust.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { copyLedger } from '../../package/trust/sqlite/ledger-backup.ts';
import { backUp } from '../../resource/storage/sqlite/back-up.ts';
import { folderOf } from '../access/place.ts';
import type { CommandResult, DataOptions, Invocation } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';

export interface BackupOptions extends DataOptions {
  readonly force?: boolean;
}

/** Name of the trust ledger in a backup. */
export const LEDGER_ATTACHMENT = 'trust.sqlite';

/** `sluice backup`: works beside a running `up`. */
export async function backup(file: string, options: BackupOptions, invocation: Invocation): Promise<CommandResult> {
  const folder = folderOf(options, invocation.environment);
  await expectDataFolder(folder);
  if (!(await exists(folder.database))) {
    throw new SluiceError('NotFound', `${folder.path} has no objects yet: there is nothing to back up`);
  }
  const target = resolve(file);
  backUp({
    ...{ database: folder.database, target, force: options.force === true, clock: systemClock },
    // Last, so that it knows of everything that the copied objects are about.
    attachments: () => {
      const ledger = copyLedger(ledgerPath(folder.path));
      return new Map(ledger === undefined ? [] : [[LEDGER_ATTACHMENT, ledger]]);
    },
  });
  const { size } = await stat(target);
  invocation.terminal.line(`${printable(file)} written (${size} bytes)`);
  return 0;
}
