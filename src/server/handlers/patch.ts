import { timestamp } from '../../foundation/clock.ts';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { serverSideApply } from '../../resource/apply/server-side-apply.ts';
import { invalidValue } from '../../resource/invalid-object.ts';
import type { Kind } from '../../resource/kind.ts';
import type { KubernetesObject, Stored } from '../../resource/object.ts';
import { applyJsonPatch } from '../../resource/patch/json-patch.ts';
import { applyMergePatch, type MergePatch } from '../../resource/patch/merge-patch.ts';
import { applyStrategicMergePatch } from '../../resource/patch/strategic-merge-patch.ts';
import { structuralSchemaOf } from '../../resource/schema/schema-of-kind.ts';
import { APPLY_PATCH, JSON_PATCH, MERGE_PATCH, patchTypesOf } from '../documents/patch-types.ts';
import { decodeJson } from '../http/json-text.ts';
import { decodeYaml, type RequestBody, textOf, unsupportedType } from '../http/request-body.ts';
import { isOn } from '../http/request-path.ts';
import { managerOf, withOwners, writePlace } from './field-owners.ts';
import { acceptObject } from './object-input.ts';
import { invalidOptions } from './query-options.ts';
import { type Handler, keyOfCall, type ResourceCall, type Services } from './resource-call.ts';
import { shown, storeChanged, storeNew } from './write.ts';

/** What a patch makes of the stored object, or of nothing. Ready to be stored: judged, and with its owners. */
type Change = (live: Stored | undefined) => KubernetesObject;

/** How often a patch is tried against other writers before it gives up. */
const ATTEMPTS = 10;
const MAX_SHOWN_PATCH = 500;

/**
 * Changes the stored object, and tries again if somebody else was faster, unless the patch names the version that it was made for.
 * An object that is applied and is not there is created, by who may create.
 */
export const patchObject: Handler = async (call, services) => {
  const body = await call.body();
  const { change, creates } = readPatch(call, services, body);
  for (let attempt = 1; ; attempt += 1) {
    const live = await stored(call, creates);
    const next = change(live);
    const pinned = live !== undefined && next.metadata.resourceVersion !== live.metadata.resourceVersion;
    try {
      if (live !== undefined) return shown(call, services, 200, await storeChanged(call, services, live, next));
      call.requireVerb('create');
      return shown(call, services, 201, await storeNew(call, services, next));
    } catch (error) {
      const overtaken = isSluiceError(error, live === undefined ? 'AlreadyExists' : 'Conflict');
      if (pinned || attempt >= ATTEMPTS || !overtaken) throw error;
    }
  }
};

async function stored(call: ResourceCall, mayBeMissing: boolean): Promise<Stored | undefined> {
  try {
    return await call.resource.storage.get(call.context, keyOfCall(call));
  } catch (error) {
    if (mayBeMissing && isSluiceError(error, 'NotFound')) return undefined;
    throw error;
  }
}

function readPatch(call: ResourceCall, services: Services, body: RequestBody): { change: Change; creates: boolean } {
  const types = patchTypesOf(call.resource.kind);
  if (!types.includes(body.mediaType)) throw unsupportedType(types);
  const text = textOf(body.bytes);
  if (body.mediaType === APPLY_PATCH)
    return { change: applied(call, services, text), creates: call.info.subResource === '' };
  if (call.query.has('force'))
    throw invalidOptions('PatchOptions', 'force', 'Forbidden: may not be specified for non-apply patch');
  const { value, duplicates } = decodeJson(text);
  const patched = patcherOf(body.mediaType, value, call.resource.kind);
  const refuse = (flaws: string) => refusePatch(text, flaws);
  const change: Change = (live) =>
    withOwners(call, services, live as Stored, acceptObject(call, patched(live as Stored), duplicates, refuse));
  return { change, creates: false };
}

function patcherOf(mediaType: string, patch: unknown, kind: Kind): (live: Stored) => unknown {
  if (mediaType === JSON_PATCH) return (live) => applyJsonPatch(live, patch);
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch))
    throw new SluiceError('BadRequest', 'the patch must be a JSON object');
  if (mediaType === MERGE_PATCH) return (live) => applyMergePatch(live, patch as MergePatch);
  return (live) => applyStrategicMergePatch(live, patch, structuralSchemaOf(kind));
}

/** Server-side apply: the body is what its manager wants to be so. */
function applied(call: ResourceCall, { clock }: Services, text: string): Change {
  if ((call.query.get('fieldManager') ?? '') === '')
    throw invalidOptions('PatchOptions', 'fieldManager', 'Required value: is required for apply patch');
  const { value, duplicates } = decodeYaml(text);
  const request = {
    ...writePlace(call),
    applied: value,
    manager: managerOf(call),
    force: isOn(call.query, 'force'),
    now: timestamp(clock.now()),
  };
  return (live) => acceptObject(call, serverSideApply({ ...request, live }).object, duplicates);
}

function refusePatch(patch: string, flaws: string): SluiceError {
  const cause = invalidValue(['patch'], patch.slice(0, MAX_SHOWN_PATCH), flaws);
  return new SluiceError('InvalidInput', ` "" is invalid: patch: ${cause.message}`, { details: { causes: [cause] } });
}
