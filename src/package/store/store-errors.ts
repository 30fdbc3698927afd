import { SluiceError } from '../../foundation/sluice-error.ts';
import { DEFAULT_NAMESPACE } from '../../resource/object/object.ts';

/** For the id of a repository that no registration names. */
export function repositoryNotFound(id: string): SluiceError {
  return new SluiceError(
    'NotFound',
    `repository "${ownName(id)}" is not registered in namespace ${namespaceIn(id)}, or not ready; see "${listCommand(namespaceIn(id))}"`,
  );
}

/** For the id of a revision. */
export function revisionNotFound(id: string): SluiceError {
  return new SluiceError(
    'NotFound',
    `package revision "${ownName(id)}" not found; "sluice rpkg get" lists what there is`,
  );
}

/**
 * For the id of a registered repository: which revisions it has is unknown, and a client must not take that for their absence. Clients
 * repeat the request after `retryAfterSeconds`; without it they report the error.
 */
export function notOpenYet(id: string, retryAfterSeconds?: number): SluiceError {
  return new SluiceError(
    'Unavailable',
    `repository "${ownName(id)}" is registered, but not open yet; try again, or see "${listCommand(namespaceIn(id))}" for what hinders it`,
    retryAfterSeconds === undefined ? {} : { details: { retryAfterSeconds } },
  );
}

export function removedMeanwhile(id: string): SluiceError {
  return new SluiceError('Unavailable', `repository ${ownName(id)} was removed while it was being opened; try again`);
}

/** The command that lists the repositories of a namespace, for messages that are read in any. */
export function listCommand(namespace: string): string {
  return `sluice repo get${namespace === DEFAULT_NAMESPACE ? '' : ` -n ${namespace}`}`;
}

function namespaceIn(id: string): string {
  return id.slice(0, id.indexOf('/'));
}

/** Without the namespace, for messages to callers in one namespace. */
export function ownName(id: string): string {
  return id.slice(id.indexOf('/') + 1);
}
