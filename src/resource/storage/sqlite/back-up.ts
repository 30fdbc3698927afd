import { randomUUID } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, linkSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { messageOf, SluiceError } from '../../../foundation/sluice-error.ts';
import type { Clock } from '../../../foundation/time/clock.ts';
import { type Attachments, writeAttachments } from './attachments.ts';
import { ObjectDatabase } from './object-database.ts';

export interface BackUpOptions {
  readonly database: string;
  /** Path of the copy. */
  readonly target: string;
  /** Replace an existing file. */
  readonly force: boolean;
  readonly clock: Clock;
  /** Files that go with the objects; called after these were copied. */
  readonly attachments?: () => Attachments;
}

/**
 * Copies an object database in a consistent state, even while another process writes it. The copy is complete, durable and
 * readable for its owner only, or does not exist. AlreadyExists if the target exists.
 */
export function backUp({ database, target, force, clock, attachments }: BackUpOptions): void {
  if (!force && existsSync(target)) throw taken(target);
  const temporary = `${target}.${randomUUID()}.tmp`;
  const source = ObjectDatabase.open({ path: database, clock, readOnly: true });
  try {
    source.copyTo(temporary);
    if (attachments !== undefined) writeAttachments(temporary, attachments());
    syncPath(temporary);
    if (force) renameSync(temporary, target);
    else linkSync(temporary, target);
    syncPath(dirname(target));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw taken(target);
    if (error instanceof SluiceError) throw error;
    throw new SluiceError('Unavailable', `cannot write ${target}: ${messageOf(error)}`, { cause: error });
  } finally {
    source.close();
    rmSync(temporary, { force: true });
  }
}

/** Makes a file, or the names in a folder, durable. */
export function syncPath(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function taken(target: string): SluiceError {
  return new SluiceError('AlreadyExists', `${target} exists already; choose another name, or replace it with --force`);
}
