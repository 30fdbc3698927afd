import { untilEnded } from '../../foundation/concurrency/until-ended.ts';
import type { Services } from '../handlers/handler.ts';
import { handlerOf } from '../handlers/handler-of.ts';
import { dryRunOf } from '../handlers/query-options.ts';
import { jsonResponse } from '../http/answer.ts';
import { negotiate } from '../http/media-type.ts';
import { decodeBody } from '../http/request-body.ts';
import { methodNotAllowed, unknownResource } from '../http/request-errors.ts';
import type { ApiRequest, RequestState } from '../request/api-request.ts';
import type { PathHandler } from '../request/path-handler.ts';
import { storageContext } from '../request/storage-context.ts';
import type { VirtualResource } from '../reviews/virtual-resource.ts';
import type { Filter } from './filter.ts';
import { readPath } from './serve-public-paths.ts';

export interface Targets {
  /** Paths for users who are allowed to read them: documents, version, metrics. */
  readonly paths: readonly PathHandler[];
  /** Questions in the form of objects. */
  readonly reviews: readonly VirtualResource[];
  readonly services: Services;
}

/** Finds what serves the request. NotFound and Unsupported before its body is read: it may be large. */
export function selectHandler({ paths, reviews, services }: Targets): Filter {
  return async (request, next) => {
    const { info } = request;
    const review = reviews.find(
      ({ group, version, resource }) =>
        group === info.group && version === info.version && resource === info.resource && info.subResource === '',
    );
    if (!info.isResource) request.found.handler = pathHandler(request, paths);
    else if (review !== undefined) request.found.handler = reviewHandler(request, review, services);
    else request.found.handler = resourceHandler(request, services);
    return next();
  };
}

function pathHandler(request: ApiRequest, paths: readonly PathHandler[]): RequestState['handler'] {
  return async () => {
    const served = await readPath(request, paths);
    if (served === undefined) throw unknownResource();
    return served;
  };
}

function reviewHandler(
  request: ApiRequest,
  review: VirtualResource,
  { decodeProtobuf }: Services,
): RequestState['handler'] {
  const { info } = request;
  request.found.isReview = true;
  if (info.name !== '' || (info.namespace !== '') !== review.namespaced) throw unknownResource();
  if (info.verb !== 'create') throw methodNotAllowed(['POST']);
  return async () => {
    const { value } = decodeBody(request.body, decodeProtobuf);
    return jsonResponse(
      201,
      await untilEnded(request.aborted.signal, () => review.answer(request.user, value, info.namespace)),
    );
  };
}

function resourceHandler(request: ApiRequest, services: Services): RequestState['handler'] {
  const { info, found } = request;
  const resource = services.resources.find(info);
  if (resource !== undefined) found.resource = resource;
  const handler = handlerOf(info, resource);
  return async () => {
    request.isDryRun = dryRunOf(request.query);
    found.context = storageContext(request, services.authorizer);
    const { deprecation } = request.resource.kind;
    if (deprecation !== undefined) request.warn(deprecation);
    found.representation = negotiate(request.incoming.headers.accept);
    return handler(request, services);
  };
}
