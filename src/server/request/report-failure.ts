import { isSluiceError, messageOf } from '../../foundation/sluice-error.ts';
import { failureStatus, type Status } from '../http/status.ts';
import type { ApiRequest } from './api-request.ts';

/** The Status of what a request failed with. */
export type FailureReporter = (request: ApiRequest, error: unknown) => Status;

/** Makes the Status that the client gets, and reports failures of the server itself to `onError`. */
export function failureReporter(onError: (error: unknown, where: string) => void): FailureReporter {
  return ({ id, found, objectName, aborted, response }, error) => {
    const { info, resource } = found;
    const subject = info?.isResource
      ? { ...info, name: info.name || objectName, kind: resource?.kind.kind }
      : undefined;
    const status = failureStatus(error, subject, id);
    const hasLeft = aborted.signal.aborted && response.destroyed;
    // A package that cannot be rendered has the status that Porch gives it, and is no failure of the server.
    const isOwn = status.code === 500 && !isSluiceError(error, 'RenderFailed');
    if (isOwn && !hasLeft) onError(withCause(error), `request ${id}`);
    return status;
  };
}

/** Formats an error for the log. The message of an internal error is for the client; its cause is for the operator. */
function withCause(error: unknown): unknown {
  if (!isSluiceError(error, 'Internal') || error.cause === undefined) return error;
  return new Error(`${error.message}: ${messageOf(error.cause)}`, { cause: error });
}
