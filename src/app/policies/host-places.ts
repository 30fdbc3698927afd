import { comparableAddress } from '../../git/open/repository-address.ts';
import type { Repository } from '../../resource/kinds/porch/repository.ts';
import type { DeliveryTarget } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import type { DeepReadonly } from '../../resource/object/object.ts';
import { placesAt } from '../../server/webhooks/host/host-event.ts';

/** The index of Repositories, and of DeliveryTargets with pull requests, by where they are: a message names one of thousands. */
export const BY_PLACE = 'host-place';

export function repositoryPlaces({ metadata, spec }: DeepReadonly<Repository>): string[] {
  return spec.git === undefined ? [] : keysOf(metadata.namespace, spec.git.repo);
}

export function targetPlaces({ metadata, spec }: DeepReadonly<DeliveryTarget>): string[] {
  return spec.pullRequest === undefined ? [] : keysOf(metadata.namespace, spec.git.repo);
}

/** The value for a place of `placeOf`. */
export function placeKey(namespace: string | undefined, place: string): string {
  return `${namespace ?? ''} at ${place}`;
}

/** The value for an address, which can be of a repository on no host. */
export function addressKey(namespace: string | undefined, address: string): string {
  return `${namespace ?? ''} ${comparableAddress(address)}`;
}

function keysOf(namespace: string | undefined, address: string): string[] {
  return [addressKey(namespace, address), ...placesAt(address).map((place) => placeKey(namespace, place))];
}
