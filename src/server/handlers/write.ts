import { SluiceError } from '../../foundation/sluice-error.ts';
import type { KubernetesObject, Stored } from '../../resource/object.ts';
import { withOwners } from './field-owners.ts';
import { requireNamespace } from './namespace-state.ts';
import { acceptObject } from './object-input.ts';
import { type Handler, keyOfCall, type ResourceCall, type Services } from './resource-call.ts';

export const createObject: Handler = async (call, services) => {
  const { value, duplicates } = call.decode(await call.body());
  const object = acceptObject(call, value, duplicates);
  const owned = withOwners(call, services, undefined, object);
  return shown(call, services, 201, await storeNew(call, services, owned));
};

/** Puts an object in the place of the stored one. What is not there is not made. */
export const updateObject: Handler = async (call, services) => {
  const { value, duplicates } = call.decode(await call.body());
  const object = acceptObject(call, value, duplicates);
  const live = await call.resource.storage.get(call.context, keyOfCall(call));
  const owned = withOwners(call, services, live, object);
  return shown(call, services, 200, await storeChanged(call, services, live, owned));
};

/** Stores an object that is not there yet. */
export async function storeNew(call: ResourceCall, services: Services, object: KubernetesObject): Promise<Stored> {
  const { resource, user, context } = call;
  if ((object.metadata.resourceVersion ?? '') !== '')
    throw new SluiceError('BadRequest', 'resourceVersion should not be set on objects to be created');
  await requireNamespace(call, services, object);
  const { kind } = resource;
  await services.admit({ user, operation: 'create', kind, subResource: '', object, old: undefined });
  const created = await resource.storage.create(context, object);
  call.note({ name: created.metadata.name });
  return created;
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

export function shown(call: ResourceCall, { presenter }: Services, status: number, object: Stored) {
  return presenter.object(presenter.view(call.resource.kind, call.representation, call.query), status, object);
}
