import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Stored } from '../../resource/object.ts';
import { applyMergePatch, type MergePatch } from '../../resource/patch/merge-patch.ts';
import { decodeJson } from '../http/json-text.ts';
import { textOf, unsupportedType } from '../http/request-body.ts';
import { acceptObject } from './object-input.ts';
import type { Handler } from './resource-call.ts';
import { changeStored, shown } from './write.ts';

const MERGE_PATCH = 'application/merge-patch+json';

export const patchObject: Handler = async (call, services) => {
  const { mediaType, bytes } = await call.body();
  if (mediaType !== MERGE_PATCH) throw unsupportedType([MERGE_PATCH]);
  const { value, duplicates } = decodeJson(textOf(bytes));
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new SluiceError('BadRequest', 'a merge patch must be a JSON object');
  const change = (live: Stored) => acceptObject(call, applyMergePatch(live, value as MergePatch), duplicates);
  return shown(call, services, 200, await changeStored(call, services, change));
};
