import { isSluiceError } from '../../foundation/sluice-error.ts';
import { jsonResponse } from '../http/answer.ts';
import type { FailureReporter } from '../request/report-failure.ts';
import type { Filter } from './filter.ts';

/** Returns a Status for whatever the later filters reject with. */
export function returnFailure(reportFailure: FailureReporter): Filter {
  return async (request, next) => {
    try {
      return await next();
    } catch (error) {
      const status = reportFailure(request, error);
      request.found.failure = status;
      const { retryAfterSeconds } = status.details ?? {};
      const allow = isSluiceError(error, 'Unsupported') ? (error.details as { allow?: string } | undefined)?.allow : '';
      return jsonResponse(status.code, status, {
        ...(retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) }),
        ...(typeof allow === 'string' && allow !== '' ? { Allow: allow } : {}),
      });
    }
  };
}
