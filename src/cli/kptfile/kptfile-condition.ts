import { chmod, rename, rm, stat, writeFile } from 'node:fs/promises';
import { editKptfile, type KptfileEdit, KptfileEditError } from '../../../kptfile-schema/index.ts';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { conditionStatus } from '../access/condition-status.ts';
import type { CommandResult, Invocation } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { readKptfileAt } from './kptfile-path.ts';

export interface SetOptions {
  readonly reason?: string;
  readonly message?: string;
}

/** `sluice kptfile condition set` */
export async function kptfileConditionSet(
  type: string,
  word: string,
  folder: string,
  { reason, message }: SetOptions,
  { terminal }: Invocation,
): Promise<CommandResult> {
  const status = conditionStatus(word);
  const condition = {
    type,
    status,
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
  };
  const changed = await edit(folder, { op: 'setCondition', condition });
  terminal.line(`${printable(type)} is ${changed ? '' : 'already '}${status}`);
  return 0;
}

/** `sluice kptfile condition rm` */
export async function kptfileConditionRemove(
  type: string,
  folder: string,
  { terminal }: Invocation,
): Promise<CommandResult> {
  const changed = await edit(folder, { op: 'removeCondition', type });
  terminal.line(`${printable(type)} ${changed ? 'removed' : 'was not there'}`);
  return 0;
}

/** Edits the file in place, all or nothing. Returns false if nothing changes. */
async function edit(folder: string, change: KptfileEdit): Promise<boolean> {
  const { path, text } = await readKptfileAt(folder);
  let next: string;
  try {
    next = editKptfile(text, [change]);
  } catch (error) {
    if (!(error instanceof KptfileEditError)) throw error;
    const place = error.line === undefined ? path : `${path}:${error.line}:${error.column ?? 1}`;
    throw new SluiceError('InvalidInput', `${place}: ${error.message}`, { cause: error });
  }
  if (next === text) return false;
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    await writeFile(temporary, next, { flag: 'wx' });
    await chmod(temporary, (await stat(path)).mode & 0o777);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw new SluiceError('Unavailable', `cannot write ${path}: ${messageOf(error)}`, { cause: error });
  }
  return true;
}
