import { SluiceError } from '../../foundation/sluice-error.ts';
import { timestamp } from '../../foundation/time/clock.ts';
import { serverSideApply } from '../../resource/apply/server-side-apply.ts';
import { invalidValue } from '../../resource/object/invalid-object.ts';
import type { KubernetesObject, Stored } from '../../resource/object/object.ts';
import { isJsonObject, ownValue } from '../../resource/object/own-property.ts';
import { applyJsonPatch } from '../../resource/patch/json-patch.ts';
import { applyMergePatch, type MergePatch } from '../../resource/patch/merge-patch.ts';
import { applyStrategicMergePatch } from '../../resource/patch/strategic-merge-patch.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { structuralSchemaOf } from '../../resource/schema/schema-of-kind.ts';
import { APPLY_PATCH, JSON_PATCH, MERGE_PATCH, patchTypesOf } from '../documents/discovery/patch-types.ts';
import { decodeJson } from '../http/json-text.ts';
import { decodeYaml, type RequestBody, textOf, unsupportedType } from '../http/request-body.ts';
import { isOn } from '../http/request-path.ts';
import type { ApiRequest } from '../request/api-request.ts';
import { managerOf, withOwners, writePlace } from './field-owners.ts';
import type { Handler, Services } from './handler.ts';
import { acceptObject, checkSize, maxBodyValues, prepareObject } from './object-input.ts';
import { invalidOptions } from './query-options.ts';
import { changeStored } from './write.ts';

/**
 * Applies a patch to the stored object, or to none: the result is validated, has its field owners, and is ready to be
 * stored.
 */
type Change = (live: Stored | undefined) => KubernetesObject;

const MAX_SHOWN_PATCH = 500;
/** Values of a JSON patch: three or four for each of the 10,000 operations that it may have. */
const MAX_PATCH_VALUES = 41_000;

/** Changes the stored object. Server-side apply creates an object that does not exist. */
export const patchObject: Handler = async (request, services) => {
  const { change, creates, value } = readPatch(request, services, request.body);
  await prepareObject(request, value);
  return changeStored(request, services, { creates, hasVersion: namesVersion(value) }, change);
};

/** True if a patch of any type contains the version of the object that it was made for. */
function namesVersion(patch: unknown): boolean {
  if (Array.isArray(patch))
    return patch.some((operation) => isJsonObject(operation) && operation.path === '/metadata/resourceVersion');
  const metadata = isJsonObject(patch) ? ownValue(patch, 'metadata') : undefined;
  return isJsonObject(metadata) && typeof ownValue(metadata, 'resourceVersion') === 'string';
}

interface ReadPatch {
  readonly change: Change;
  /** True if an object that does not exist is created. */
  readonly creates: boolean;
  /** The patch itself. */
  readonly value: unknown;
}

function readPatch(request: ApiRequest, services: Services, body: RequestBody): ReadPatch {
  const types = patchTypesOf(request.resource.kind);
  if (!types.includes(body.mediaType)) throw unsupportedType(types);
  const text = textOf(body.bytes);
  if (body.mediaType === APPLY_PATCH)
    return { ...readApplyPatch(request, services, text), creates: request.info.subResource === '' };
  if (request.query.has('force'))
    throw invalidOptions('PatchOptions', 'force', 'Forbidden: may not be specified for non-apply patch');
  const maxValues = body.mediaType === JSON_PATCH ? MAX_PATCH_VALUES : maxBodyValues(request.resource.kind);
  const { value, duplicates } = decodeJson(text, maxValues);
  if (body.mediaType !== JSON_PATCH) checkSize(request, value);
  const patched = patcherOf(body.mediaType, value, request.resource.kind);
  const refuse = (flaws: string) => refusePatch(request.resource.kind.sensitive ? '(not shown)' : text, flaws);
  const { storage } = request.resource;
  const change: Change = (live) => {
    const object = acceptObject(request, patched(live as Stored), duplicates, refuse);
    return withOwners(request, services, live as Stored, storage.afterPatch?.(live as Stored, object) ?? object);
  };
  return { change, creates: false, value };
}

function patcherOf(mediaType: string, patch: unknown, kind: Kind): (live: Stored) => unknown {
  if (mediaType === JSON_PATCH) return (live) => applyJsonPatch(live, patch);
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch))
    throw new SluiceError('BadRequest', 'the patch must be a JSON object');
  if (mediaType === MERGE_PATCH) return (live) => applyMergePatch(live, patch as MergePatch);
  return (live) => applyStrategicMergePatch(live, patch, structuralSchemaOf(kind));
}

/** Reads a server-side apply: the body contains the fields that its manager wants to own. */
function readApplyPatch(request: ApiRequest, { clock }: Services, text: string): Pick<ReadPatch, 'change' | 'value'> {
  if ((request.query.get('fieldManager') ?? '') === '')
    throw invalidOptions('PatchOptions', 'fieldManager', 'Required value: is required for apply patch');
  const { value, duplicates } = decodeYaml(text, maxBodyValues(request.resource.kind));
  checkSize(request, value);
  requireType(value);
  const apply = {
    ...writePlace(request),
    applied: value,
    manager: managerOf(request),
    force: isOn(request.query, 'force'),
    now: timestamp(clock.now()),
  };
  const { applyNeverRemoves } = request.resource.storage;
  const change: Change = (live) => {
    const base = applyNeverRemoves ? withoutApplied(live, apply.manager) : live;
    return acceptObject(request, serverSideApply({ ...apply, live: base }).object, duplicates);
  };
  return { change, value };
}

/** An apply patch must have its type, so that a file that is sent to the wrong URL is refused. */
function requireType(value: unknown): void {
  if (!isJsonObject(value)) return;
  for (const field of ['apiVersion', 'kind'])
    if (typeof ownValue(value, field) !== 'string')
      throw new SluiceError('BadRequest', `the ${field} of the apply patch is missing`);
}

/** The object as if this manager had not applied anything yet, so that apply removes no field. */
function withoutApplied(live: Stored | undefined, manager: string): Stored | undefined {
  if (live?.metadata.managedFields === undefined) return live;
  const others = live.metadata.managedFields.filter(
    (entry) => entry.operation !== 'Apply' || entry.manager !== manager,
  );
  return { ...live, metadata: { ...live.metadata, managedFields: others } };
}

function refusePatch(patch: string, flaws: string): SluiceError {
  const cause = invalidValue(['patch'], patch.slice(0, MAX_SHOWN_PATCH), flaws);
  return new SluiceError('InvalidInput', ` "" is invalid: patch: ${cause.message}`, { details: { causes: [cause] } });
}
