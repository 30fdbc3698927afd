import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { systemClock } from '../../foundation/clock.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { backUp } from '../../resource/sqlite/back-up.ts';
import { folderOf } from '../access/place.ts';
import { exists, expectDataFolder } from '../assembly/data-folder.ts';
import { printable } from '../output/printable.ts';
import type { DataOptions, Invocation, Outcome } from '../program/invocation.ts';

export interface BackupOptions extends DataOptions {
  readonly force?: boolean;
}

/** `sluice backup`: works beside a running `up`. */
export async function backup(file: string, options: BackupOptions, invocation: Invocation): Promise<Outcome> {
  const folder = folderOf(options, invocation.environment);
  await expectDataFolder(folder);
  if (!(await exists(folder.database))) {
    throw new SluiceError('NotFound', `${folder.path} has no objects yet: there is nothing to back up`);
  }
  const target = resolve(file);
  backUp({ database: folder.database, target, force: options.force === true, clock: systemClock });
  const { size } = await stat(target);
  invocation.terminal.line(`${printable(file)} written (${size} bytes)`);
  return 0;
}
