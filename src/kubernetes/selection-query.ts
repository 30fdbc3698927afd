import type { SelectOptions } from '../resource/client/client.ts';
import { formatFieldSelector } from '../resource/selector/field-selector.ts';
import { formatLabelSelector, labelSelector } from '../resource/selector/label-selector.ts';

export type Query = Readonly<Record<string, string | undefined>>;

/** The selectors of a list or a watch as parameters. The server validates selectors that are text. */
export function selectionQuery({ labelSelector: labels, fieldSelector: fields }: SelectOptions): Query {
  return {
    labelSelector:
      typeof labels === 'object'
        ? formatLabelSelector('requirements' in labels ? labels : labelSelector(labels))
        : labels,
    fieldSelector: typeof fields === 'object' ? formatFieldSelector(fields) : fields,
  };
}

/** Appends a query to a path; omits empty parameters. */
export function withQuery(path: string, query: Query): string {
  const entries = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  return entries.length === 0 ? path : `${path}?${new URLSearchParams(entries)}`;
}
