import type { ApiResponse } from '../http/answer.ts';
import { methodNotAllowed } from '../http/request-errors.ts';
import type { ApiRequest } from '../request/api-request.ts';
import type { PathHandler } from '../request/path-handler.ts';
import type { Filter } from './filter.ts';

export interface PublicPaths {
  /** Paths with any method. What it serves proves itself by signatures. */
  readonly webhooks: PathHandler | undefined;
  /** Paths that every client may read. */
  readonly publicPaths: readonly PathHandler[];
}

/** Serves the paths that need no user: webhooks and the plain health checks. */
export function servePublicPaths({ webhooks, publicPaths }: PublicPaths): Filter {
  return async (request, next) => {
    const { info, query, incoming } = request;
    if (info.isResource) return next();
    const served = await webhooks?.({ path: info.path, query, request: incoming });
    return served ?? (await readPath(request, publicPaths)) ?? next();
  };
}

/** The response of the first handler that serves the path; undefined if there is none. Paths can only be read. */
export async function readPath(
  { info, query, incoming }: ApiRequest,
  handlers: readonly PathHandler[],
): Promise<ApiResponse | undefined> {
  for (const handler of handlers) {
    const served = await handler({ path: info.path, query, request: incoming });
    if (served === undefined) continue;
    if (info.verb !== 'get' && info.verb !== 'head') throw methodNotAllowed(['GET', 'HEAD']);
    return served;
  }
  return undefined;
}
