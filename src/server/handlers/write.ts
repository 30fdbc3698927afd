import { retryConflicts } from '../../foundation/retry-conflicts.ts';
import { type ErrorCode, isSluiceError, SluiceError, unlessMissing } from '../../foundation/sluice-error.ts';
import { invalidObject, invalidValue } from '../../resource/object/invalid-object.ts';
import type { KubernetesObject, Stored } from '../../resource/object/object.ts';
import { checkPreconditions } from '../../resource/storage/memory/object-rules.ts';
import type { Answer } from '../http/answer.ts';
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
  const created = await storeNew(request, services, withOwners(request, services, undefined, object));
  return shown(request, services, 201, created);
};

/** Puts an object in the place of the stored one. What is not there is not made. */
export const updateObject: Handler = async (request, services) => {
  const { value, duplicates } = decodeObject(request, services);
  await prepareObject(request, value);
  const object = acceptObject(request, value, duplicates);
  requireVersion(request, object);
  const pinned = object.metadata.resourceVersion !== undefined || request.resource.storage.updatesNeedVersion === true;
  const change = (live: Stored | undefined) => {
    // What is judged against the stored object must replace that very object.
    const { resourceVersion } = pinned ? object.metadata : (live?.metadata ?? {});
    return withOwners(request, services, live, { ...object, metadata: { ...object.metadata, resourceVersion } });
  };
  return changeStored(request, services, { creates: false, namesVersion: pinned }, change);
};

/** Objects of kinds that users define are never replaced unseen. */
function requireVersion({ resource: { kind } }: ApiRequest, { metadata }: KubernetesObject): void {
  if (kind.updatesNeedVersion !== true || metadata.resourceVersion !== undefined) return;
  const cause = invalidValue(['metadata', 'resourceVersion'], 0, 'must be specified for an update');
  throw invalidObject(`${kind.kind}.${kind.group} ${JSON.stringify(metadata.name)}`, [cause]);
}

/**
 * Stores what `change` makes of the stored object, and tries again if another writer was faster, unless the result names another
 * version than that. With `creates` an object that is not there is made from nothing, by who may create; else it is NotFound.
 * `namesVersion` says that the request names the version that its author read.
 */
export async function changeStored(
  request: ApiRequest,
  services: Services,
  { creates, namesVersion }: { readonly creates: boolean; readonly namesVersion: boolean },
  change: (live: Stored | undefined) => KubernetesObject,
): Promise<Answer> {
  let overtakenBy: ErrorCode | undefined;
  const attempt = async () => {
    overtakenBy = undefined;
    const live = await findStored(request, creates);
    const next = change(live);
    if (live !== undefined) refuseFutureVersion(request, live, next);
    const pinned = live !== undefined && next.metadata.resourceVersion !== live.metadata.resourceVersion;
    if (!pinned) overtakenBy = live === undefined ? 'AlreadyExists' : 'Conflict';
    if (live !== undefined)
      return shown(request, services, 200, await storeChanged(request, services, live, next, namesVersion));
    await requireVerb(request, services, 'create');
    return shown(request, services, 201, await storeNew(request, services, next));
  };
  return retryConflicts(attempt, {
    signal: request.context.signal,
    isConflict: (error) => overtakenBy !== undefined && isSluiceError(error, overtakenBy),
  });
}

/**
 * Conflict for a version that the object does not have yet. A caller who guesses the next one would otherwise have the write judged against
 * this state and stored over another one, which a writer in between leaves.
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

async function storeNew(request: ApiRequest, services: Services, object: KubernetesObject): Promise<Stored> {
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

/** Stores a new state of an object, or of what its sub-resource owns. */
async function storeChanged(
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

export function shown(request: ApiRequest, { presenter }: Services, status: number, object: Stored): Answer {
  return presenter.object(presenter.view(request.resource.kind, request.representation, request.query), status, object);
}
