import type { RequestRecord } from '../request/request-record.ts';

const WRITES: ReadonlySet<string> = new Set(['create', 'update', 'patch', 'delete', 'deletecollection']);

/**
 * The line of the audit log for a request; undefined for a request that writes no object. Requests without a user are not logged: they
 * write nothing, and any client could fill the log with them.
 */
export function auditLine(record: RequestRecord): string | undefined {
  const { user, served, isResource, verb } = record;
  if (!isResource || served === 'review' || user === undefined || !WRITES.has(verb)) return undefined;
  const { time, requestId, groups, impersonator, group, version, resource, subResource, namespace, name } = record;
  const { dryRun, code, reason, milliseconds } = record;
  return JSON.stringify({
    time,
    requestId,
    user,
    groups,
    impersonator,
    verb,
    group,
    version,
    resource,
    subResource: subResource || undefined,
    namespace: namespace || undefined,
    name: name || undefined,
    dryRun: dryRun || undefined,
    code,
    reason: reason || undefined,
    milliseconds,
  });
}
