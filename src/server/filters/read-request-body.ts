import type { Clock } from '../../foundation/time/clock.ts';
import { EMPTY_BODY, readBody } from '../http/request-body.ts';
import type { Filter } from './filter.ts';

export interface BodyLimits {
  /** Bytes of a body, inflated. */
  readonly maxBytes: number;
  /** Milliseconds within which the whole body must arrive. */
  readonly timeoutMs: number;
}

const METHODS_WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);

/** Reads the whole body within one deadline: a client that sends slowly must not occupy a slot. */
export function readRequestBody(clock: Clock, { maxBytes: limit, timeoutMs }: BodyLimits): Filter {
  return async (request, next) => {
    const { incoming, openRequest, found } = request;
    const hasBody = METHODS_WITH_BODY.has(incoming.method ?? '');
    found.body = hasBody
      ? await readBody(incoming, { limit, timeoutMs, hold: openRequest.reserve, clock })
      : EMPTY_BODY;
    return next();
  };
}
