import type { IncomingMessage } from 'node:http';
import type { ApiResponse } from '../http/answer.ts';

/** A request for a path outside of the resources. */
export interface PathRequest {
  readonly path: string;
  readonly query: URLSearchParams;
  readonly request: IncomingMessage;
}

/** Serves some paths; returns undefined for all others. */
export type PathHandler = (request: PathRequest) => ApiResponse | undefined | Promise<ApiResponse | undefined>;
