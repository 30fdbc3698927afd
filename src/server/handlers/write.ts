import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import type { KubernetesObject, Stored } from '../../resource/object.ts';
import { requireNamespace } from './namespace-state.ts';
import { acceptObject } from './object-input.ts';
import { type Handler, keyOfCall, type ResourceCall, type Services } from './resource-call.ts';

/** How often a patch is tried against other writers before it gives up. */
const PATCH_ATTEMPTS = 10;

export const createObject: Handler = async (call, services) => {
  const { value, duplicates } = call.decode(await call.body());
  const object = acceptObject(call, value, duplicates);
  return shown(call, services, 201, await storeNew(call, services, object));
};

/** Puts an object in the place of the stored one. What is not there is not made. */
export const updateObject: Handler = async (call, services) => {
  const { value, duplicates } = call.decode(await call.body());
  const object = acceptObject(call, value, duplicates);
  const live = await call.resource.storage.get(call.context, keyOfCall(call));
  return shown(call, services, 200, await storeChanged(call, services, live, object));
};

/** Stores an object that is not there yet. */
export async function storeNew(call: ResourceCall, services: Services, object: KubernetesObject): Promise<Stored> {
  const { resource, user, context } = call;
  if ((object.metadata.resourceVersion ?? '') !== '')
    throw new SluiceError('BadRequest', 'resourceVersion should not be set on objects to be created');
  await requireNamespace(call, services);
  const { kind } = resource;
  await services.admit({ user, operation: 'create', kind, subResource: '', object, old: undefined });
  return resource.storage.create(context, object);
}

/** Stores a new state of an object, or of what its sub-resource owns. */
export async function storeChanged(
  call: ResourceCall,
  services: Services,
  live: Stored,
  object: KubernetesObject,
): Promise<Stored> {
  const { resource, user, context, info } = call;
  const { kind, storage } = resource;
  const { subResource } = info;
  await services.admit({ user, operation: 'update', kind, subResource, object, old: live });
  return subResource === '' ? storage.update(context, object) : storage.updateSubResource(context, subResource, object);
}

/**
 * Changes the stored object, and tries again if somebody else was faster, unless the change names the version that it was made
 * for.
 */
export async function changeStored(
  call: ResourceCall,
  services: Services,
  change: (live: Stored) => KubernetesObject,
): Promise<Stored> {
  for (let attempt = 1; ; attempt += 1) {
    const live = await call.resource.storage.get(call.context, keyOfCall(call));
    const next = change(live);
    const pinned = next.metadata.resourceVersion !== live.metadata.resourceVersion;
    try {
      return await storeChanged(call, services, live, next);
    } catch (error) {
      if (pinned || attempt >= PATCH_ATTEMPTS || !isSluiceError(error, 'Conflict')) throw error;
    }
  }
}

export function shown(call: ResourceCall, { presenter }: Services, status: number, object: Stored) {
  return presenter.object(presenter.view(call.resource.kind, call.representation, call.query), status, object);
}
