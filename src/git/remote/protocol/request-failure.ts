import { isSluiceError } from '../../../foundation/sluice-error.ts';

/** Details of the SluiceError of a failed request to a server. */
export interface RequestFailure {
  /** The status of the answer, if there was one; over HTTP only. */
  readonly status?: number | undefined;
  /** False if the server has certainly not applied this request. */
  readonly mayBeApplied: boolean;
  /** Seconds of the Retry-After header. */
  readonly retryAfter?: number | undefined;
}

/** Returns the details of a failed request. */
export function failureOf(error: unknown): RequestFailure {
  const details = isSluiceError(error) ? (error.details as Partial<RequestFailure> | undefined) : undefined;
  return { mayBeApplied: details?.mayBeApplied ?? false, status: details?.status, retryAfter: details?.retryAfter };
}
