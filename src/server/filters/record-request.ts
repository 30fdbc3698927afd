import type { Clock } from '../../foundation/time/clock.ts';
import type { RequestInfo } from '../http/request-path.ts';
import type { ApiRequest } from '../request/api-request.ts';
import type { RequestRecord } from '../request/request-record.ts';
import type { Filter } from './filter.ts';

const NO_INFO: Omit<RequestInfo, 'path'> = {
  ...{ verb: '', isResource: false, group: '', version: '' },
  ...{ resource: '', subResource: '', namespace: '', name: '' },
};

/** Reports each request once its response is known, whatever it is: to metrics and to the audit log. */
export function recordRequest(clock: Clock, onRequest: ((record: RequestRecord) => void) | undefined): Filter {
  return async (request, next) => {
    const response = await next();
    onRequest?.(recordOf(request, 'stream' in response ? 200 : response.status, clock.now()));
    return response;
  };
}

function recordOf(request: ApiRequest, code: number, now: number): RequestRecord {
  const { found, startedAtMs } = request;
  const { info, sender, resource, isReview, failure } = found;
  const user = found.user ?? sender;
  const { path: _path, ...about } = info ?? { ...NO_INFO, path: '' };
  return {
    ...about,
    time: new Date(startedAtMs).toISOString(),
    requestId: request.id,
    name: about.name || request.objectName,
    user: user?.name,
    groups: user?.groups ?? [],
    impersonator: user === sender ? undefined : sender?.name,
    served: resource !== undefined ? 'stored' : isReview ? 'review' : 'unknown',
    dryRun: request.isDryRun,
    code,
    reason: failure?.reason ?? '',
    milliseconds: now - startedAtMs,
  };
}
