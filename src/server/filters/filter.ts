import type { ApiResponse, StreamedResponse } from '../http/answer.ts';
import type { ApiRequest } from '../request/api-request.ts';

/** Produces the response of a request, or rejects with its error. */
export type Responder = (request: ApiRequest) => Promise<ApiResponse | StreamedResponse>;

/**
 * One step in the processing of a request. It returns the response of `next`, and may act before and after that; it returns a response
 * of its own, so that later filters do not get the request; or it rejects.
 */
export type Filter = (
  request: ApiRequest,
  next: () => Promise<ApiResponse | StreamedResponse>,
) => Promise<ApiResponse | StreamedResponse>;

/** A responder that passes each request through the filters, the first one outermost, to `respond`. */
export function composeFilters(filters: readonly Filter[], respond: Responder): Responder {
  return filters.reduceRight<Responder>((next, filter) => (request) => filter(request, () => next(request)), respond);
}
