import { isSluiceError } from '../../../foundation/sluice-error.ts';

/** What is known of a request to a server that failed: the details of its SluiceError. */
export interface RequestFailure {
  /** The status of the answer, if there was one; over HTTP only. */
  readonly status?: number | undefined;
  /** False if the server has certainly changed nothing for this request. */
  readonly mayBeDone: boolean;
  /** Seconds after which the server wants to be asked again. */
  readonly retryAfter?: number | undefined;
}

/** What is known of a request that failed. */
export function failureOf(error: unknown): RequestFailure {
  const details = isSluiceError(error) ? (error.details as Partial<RequestFailure> | undefined) : undefined;
  return { mayBeDone: details?.mayBeDone ?? false, status: details?.status, retryAfter: details?.retryAfter };
}
