import type { ResultItem } from '../../../kptfile-schema/index.ts';
import type { Resource } from '../resource/resource.ts';

/** One finding of a function, as in `results` of a ResourceList. */
export interface FunctionResult extends ResultItem {
  readonly message: string;
  readonly severity: 'error' | 'warning' | 'info';
}

/** The finding about a resource, and about a field of it if `path` (such as `spec.replicas`) is given. */
export function resultFor(
  severity: FunctionResult['severity'],
  message: string,
  resource: Resource,
  path?: string,
): FunctionResult {
  const { apiVersion, kind, name, namespace, file, index } = resource;
  return {
    message,
    severity,
    resourceRef: { apiVersion, kind, name, ...(namespace === undefined ? {} : { namespace }) },
    ...(path === undefined ? {} : { field: { path } }),
    file: { path: file, index },
  };
}

/** The same finding as functions have it that name the file and not the resource. */
export function withoutReference({ resourceRef: _resource, ...result }: FunctionResult): FunctionResult {
  return result;
}
