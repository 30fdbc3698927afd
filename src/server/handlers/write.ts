import { retryConflicts } from '../../foundation/concurrency/retry-conflicts.ts';
import { type ErrorCode, isSluiceError, SluiceError, unlessMissing } from '../../foundation/sluice-error.ts';
import { invalidObject, invalidValue } from '../../resource/object/invalid-object.ts';
import type { KubernetesObject, Stored } from '../../resource/object/object.ts';
import { checkPreconditions } from '../../resource/storage/memory/object-rules.ts';
import type { ApiResponse } from '../http/answer.ts';
import type { ApiRequest } from '../request/api-request.ts';
import { admitWrite } from './admit-write.ts';
import { withOwners } from './field-owners.ts';
import { type Handler, keyOfRequest, requireVerb, type Services } from './handler.ts';
import { isLaterVersion } from './list-version.ts';
import { requireNamespace } from './namespace-state.ts';
import { acceptObject, decodeObject, prepareObject } from './object-input.ts';

export const createObject: Handler = async (request, services) => {
  const { value, duplicates } = decodeObject(request, services);
  await prepareObject(request, value);
  const object = acceptObject(request, value, duplicates);
  const created = await createAdmitted(request, services, withOwners(request, services, undefined, object));
  return objectResponse(request, services, 201, created);
};

/** Replaces a stored object. NotFound if there is none. */
export const updateObject: Handler = async (request, services) => {
  const { value, duplicates } = decodeObject(request, services);
  await prepareObject(request, value);
  const object = acceptObject(request, value, duplicates);
  requireVersion(request, object);
  const pinned = object.metadata.resourceVersion !== undefined || request.resource.storage.updatesNeedVersion === true;
  const change = (live: Stored | undefined) => {
    // The object replaces exactly the state that it was validated against.
    const { resourceVersion } = pinned ? object.metadata : (live?.metadata ?? {});
    return withOwners(request, services, live, { ...object, metadata: { ...object.metadata, resourceVersion } });
  };
  return changeStored(request, services, { creates: false, hasVersion: pinned }, change);
};

/** As in Kubernetes, an update of a kind that users define must name the version that it replaces. */
function requireVersion({ resource: { kind } }: ApiRequest, { metadata }: KubernetesObject): void {
  if (!kind.strategy.updatesNeedVersion || metadata.resourceVersion !== undefined) return;
  const cause = invalidValue(['metadata', 'resourceVersion'], 0, 'must be specified for an update');
  throw invalidObject(`${kind.kind}.${kind.group} ${JSON.stringify(metadata.name)}`, [cause]);
}

/**
 * Stores what `change` makes of the stored object, and tries again if another writer was faster, unless the result names another version
 * than the stored one. With `creates` an object that does not exist is created, if the user may create it; else it is NotFound.
 * `namesVersion` is true if the request names the version that its author read.
 */
export async function changeStored(
  request: ApiRequest,
  services: Services,
  { creates, hasVersion: namesVersion }: { readonly creates: boolean; readonly hasVersion: boolean },
  change: (live: Stored | undefined) => KubernetesObject,
): Promise<ApiResponse> {
  let overtakenBy: ErrorCode | undefined;
  const attempt = async () => {
    overtakenBy = undefined;
    const live = await findStored(request, creates);
    const next = change(live);
    if (live !== undefined) refuseFutureVersion(request, live, next);
    const pinned = live !== undefined && next.metadata.resourceVersion !== live.metadata.resourceVersion;
    if (!pinned) overtakenBy = live === undefined ? 'AlreadyExists' : 'Conflict';
    if (live !== undefined)
      return objectResponse(request, services, 200, await updateAdmitted(request, services, live, next, namesVersion));
    await requireVerb(request, services, 'create');
    return objectResponse(request, services, 201, await createAdmitted(request, services, next));
  };
  const { kind } = request.resource;
  const { namespace, name } = request.info;
  return retryConflicts(attempt, {
    signal: request.context.signal,
    // Many writers of one object would otherwise beat each other until the retries of some are used up.
    runRetry: (retry) => services.retries.run(`${kind.group}/${kind.plural}/${namespace}/${name}`, retry),
    isConflict: (error) => overtakenBy !== undefined && isSluiceError(error, overtakenBy),
  });
}

/**
 * Conflict for a version that the object does not have yet. A caller who guesses the next version could otherwise have the write
 * validated against this state and stored over a concurrent one.
 */
function refuseFutureVersion({ resource: { kind } }: ApiRequest, live: Stored, { metadata }: KubernetesObject): void {
  const { resourceVersion } = metadata;
  if (resourceVersion !== undefined && isLaterVersion(resourceVersion, live.metadata.resourceVersion))
    checkPreconditions(kind, live, { resourceVersion });
}

function findStored(request: ApiRequest, mayBeMissing: boolean): Promise<Stored | undefined> {
  const found = request.resource.storage.get(request.context, keyOfRequest(request));
  return mayBeMissing ? unlessMissing(found) : found;
}

async function createAdmitted(request: ApiRequest, services: Services, object: KubernetesObject): Promise<Stored> {
  const { resource, user, context } = request;
  if (object.metadata.resourceVersion !== undefined && resource.storage.ignoresVersionOnCreate !== true)
    throw new SluiceError('BadRequest', 'resourceVersion should not be set on objects to be created');
  await requireNamespace(request, services, object);
  const { kind } = resource;
  await admitWrite(request, services, { user, operation: 'create', kind, subResource: '', object, old: undefined });
  const created = await resource.storage.create(context, object);
  request.objectName = created.metadata.name;
  return created;
}

/** Admits and stores a new state of an object, or of what its sub-resource owns. */
async function updateAdmitted(
  request: ApiRequest,
  services: Services,
  live: Stored,
  object: KubernetesObject,
  namesVersion: boolean,
): Promise<Stored> {
  const { resource, user, info } = request;
  const context = namesVersion ? request.context : { ...request.context, namesNoVersion: true };
  const { kind, storage } = resource;
  const { subResource } = info;
  await admitWrite(request, services, { user, operation: 'update', kind, subResource, object, old: live });
  return subResource === '' ? storage.update(context, object) : storage.updateSubResource(context, subResource, object);
}

export function objectResponse(
  request: ApiRequest,
  { presenter }: Services,
  status: number,
  object: Stored,
): ApiResponse {
  return presenter.object(presenter.view(request.resource.kind, request.representation, request.query), status, object);
}
