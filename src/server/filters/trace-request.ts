import { type OpenSpan, traced } from '../../foundation/tracing/traced.ts';
import { MASTERS_GROUP } from '../authentication/user.ts';
import { failureStatus } from '../http/status.ts';
import type { ApiRequest } from '../request/api-request.ts';
import type { Filter } from './filter.ts';

/** The groups whose `traceparent` kube-apiserver continues too: other callers must not decide what is recorded. */
const TRUSTED_GROUPS: ReadonlySet<string> = new Set([MASTERS_GROUP, 'system:monitoring']);

/**
 * Records the request as a span, from its arrival until its response is known; for a watch, until it began. As in kube-apiserver, only
 * requests with a sender are recorded. The span has neither names of objects nor the query: Secrets have names too.
 */
export const traceRequest: Filter = (request, next) => {
  const { incoming, startedAtMs, id, sender } = request;
  const { method = '' } = incoming;
  const traceparent = request.header('traceparent');
  const isTrusted = sender.groups.some((group) => TRUSTED_GROUPS.has(group));
  return traced(
    method,
    { 'http.request.method': method, 'sluice.request_id': id },
    async (span) => {
      try {
        const response = await next();
        describe(span, request, 'stream' in response ? 200 : response.status);
        return response;
      } catch (error) {
        describe(span, request, failureStatus(error, undefined, id).code);
        throw error;
      }
    },
    { kind: 'server', startedAtMs, ...(traceparent === '' ? {} : { caller: { traceparent, isTrusted } }) },
  );
};

/** What is not served has no route: there would be as many as clients make up. */
function describe(span: OpenSpan, { incoming, found }: ApiRequest, code: number): void {
  const { info, resource, isReview } = found;
  span.set({ 'http.response.status_code': code });
  if (info === undefined || (resource === undefined && isReview !== true)) return;
  const { group, version, namespace, resource: plural, subResource, name, verb } = info;
  const parts = [
    group === '' ? `/api/${version}` : `/apis/${group}/${version}`,
    ...(namespace === '' ? [] : ['namespaces/{namespace}']),
    plural,
    ...(name === '' || verb === 'list' || verb === 'watch' || verb === 'deletecollection' ? [] : ['{name}']),
    ...(subResource === '' ? [] : [subResource]),
  ];
  const route = parts.join('/');
  span.rename(`${incoming.method} ${route}`);
  span.set({ 'http.route': route, 'sluice.verb': verb, 'sluice.resource': plural, 'sluice.api_group': group });
  if (subResource !== '') span.set({ 'sluice.subresource': subResource });
}
