import { retryConflicts } from '../../foundation/retry-conflicts.ts';
import { type ErrorCode, isSluiceError, SluiceError, unlessMissing } from '../../foundation/sluice-error.ts';
import { invalidObject, invalidValue } from '../../resource/object/invalid-object.ts';
import type { KubernetesObject, Stored } from '../../resource/object/object.ts';
import { checkPreconditions } from '../../resource/storage/memory/object-rules.ts';
import type { Answer } from '../http/answer.ts';
import { admitWrite } from './admit-write.ts';
import { withOwners } from './field-owners.ts';
import { isLaterVersion } from './list-version.ts';
import { requireNamespace } from './namespace-state.ts';
import { acceptObject, prepareObject } from './object-input.ts';
import { type Handler, keyOfCall, type ResourceCall, type Services } from './resource-call.ts';

export const createObject: Handler = async (call, services) => {
  const { value, duplicates } = call.decode(call.body);
  await prepareObject(call, value);
  const object = acceptObject(call, value, duplicates);
  const created = await storeNew(call, services, withOwners(call, services, undefined, object));
  return shown(call, services, 201, created);
};

/** Puts an object in the place of the stored one. What is not there is not made. */
export const updateObject: Handler = async (call, services) => {
  const { value, duplicates } = call.decode(call.body);
  await prepareObject(call, value);
  const object = acceptObject(call, value, duplicates);
  requireVersion(call, object);
  const pinned = object.metadata.resourceVersion !== undefined || call.resource.storage.updatesNeedVersion === true;
  const change = (live: Stored | undefined) => {
    // What is judged against the stored object must replace that very object.
    const { resourceVersion } = pinned ? object.metadata : (live?.metadata ?? {});
    return withOwners(call, services, live, { ...object, metadata: { ...object.metadata, resourceVersion } });
  };
  return changeStored(call, services, { creates: false, namesVersion: pinned }, change);
};

/** Objects of kinds that users define are never replaced unseen. */
function requireVersion({ resource: { kind } }: ResourceCall, { metadata }: KubernetesObject): void {
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
  call: ResourceCall,
  services: Services,
  { creates, namesVersion }: { readonly creates: boolean; readonly namesVersion: boolean },
  change: (live: Stored | undefined) => KubernetesObject,
): Promise<Answer> {
  let overtakenBy: ErrorCode | undefined;
  const attempt = async () => {
    overtakenBy = undefined;
    const live = await findStored(call, creates);
    const next = change(live);
    if (live !== undefined) refuseFutureVersion(call, live, next);
    const pinned = live !== undefined && next.metadata.resourceVersion !== live.metadata.resourceVersion;
    if (!pinned) overtakenBy = live === undefined ? 'AlreadyExists' : 'Conflict';
    if (live !== undefined)
      return shown(call, services, 200, await storeChanged(call, services, live, next, namesVersion));
    await call.requireVerb('create');
    return shown(call, services, 201, await storeNew(call, services, next));
  };
  return retryConflicts(attempt, {
    signal: call.context.signal,
    isConflict: (error) => overtakenBy !== undefined && isSluiceError(error, overtakenBy),
  });
}

/**
 * Conflict for a version that the object does not have yet. A caller who guesses the next one would otherwise have the write judged against
 * this state and stored over another one, which a writer in between leaves.
 */
function refuseFutureVersion({ resource: { kind } }: ResourceCall, live: Stored, { metadata }: KubernetesObject): void {
  const { resourceVersion } = metadata;
  if (resourceVersion !== undefined && isLaterVersion(resourceVersion, live.metadata.resourceVersion))
    checkPreconditions(kind, live, { resourceVersion });
}

function findStored(call: ResourceCall, mayBeMissing: boolean): Promise<Stored | undefined> {
  const found = call.resource.storage.get(call.context, keyOfCall(call));
  return mayBeMissing ? unlessMissing(found) : found;
}

async function storeNew(call: ResourceCall, services: Services, object: KubernetesObject): Promise<Stored> {
  const { resource, user, context } = call;
  if (object.metadata.resourceVersion !== undefined && resource.storage.ignoresVersionOnCreate !== true)
    throw new SluiceError('BadRequest', 'resourceVersion should not be set on objects to be created');
  await requireNamespace(call, services, object);
  const { kind } = resource;
  await admitWrite(call, services, { user, operation: 'create', kind, subResource: '', object, old: undefined });
  const created = await resource.storage.create(context, object);
  call.note({ name: created.metadata.name });
  return created;
}

/** Stores a new state of an object, or of what its sub-resource owns. */
async function storeChanged(
  call: ResourceCall,
  services: Services,
  live: Stored,
  object: KubernetesObject,
  namesVersion: boolean,
): Promise<Stored> {
  const { resource, user, info } = call;
  const context = namesVersion ? call.context : { ...call.context, namesNoVersion: true };
  const { kind, storage } = resource;
  const { subResource } = info;
  await admitWrite(call, services, { user, operation: 'update', kind, subResource, object, old: live });
  return subResource === '' ? storage.update(context, object) : storage.updateSubResource(context, subResource, object);
}

export function shown(call: ResourceCall, { presenter }: Services, status: number, object: Stored): Answer {
  return presenter.object(presenter.view(call.resource.kind, call.representation, call.query), status, object);
}
