import { isSluiceError } from '../../foundation/sluice-error.ts';
import { fieldSelector } from '../../resource/selector/field-selector.ts';
import { labelSelector } from '../../resource/selector/label-selector.ts';
import type { RequestSelectors } from '../authorization/authorizer.ts';

/**
 * The selectors of a request for authorizers, as a kube-apiserver passes them since 1.32; undefined if there are none. One that cannot be
 * parsed is left out, as there: the review is then about all objects, and the handler refuses the request.
 */
export function requestSelectors(query: URLSearchParams): RequestSelectors | undefined {
  const fields = parsed(query.get('fieldSelector'), (text) =>
    fieldSelector(text).requirements.map(({ path, operator, value }) => ({
      ...{ key: path, operator: operator === '=' ? ('In' as const) : ('NotIn' as const) },
      values: [value],
    })),
  );
  const labels = parsed(query.get('labelSelector'), (text) =>
    labelSelector(text).requirements.map(({ key, operator, values }) =>
      values.length === 0 ? { key, operator } : { key, operator, values: [...values] },
    ),
  );
  if (fields.length === 0 && labels.length === 0) return undefined;
  return {
    ...(fields.length === 0 ? {} : { fieldSelector: { requirements: fields } }),
    ...(labels.length === 0 ? {} : { labelSelector: { requirements: labels } }),
  };
}

function parsed<Requirement>(text: string | null, parse: (text: string) => Requirement[]): Requirement[] {
  if (text === null || text === '') return [];
  try {
    return parse(text);
  } catch (error) {
    if (isSluiceError(error)) return [];
    throw error;
  }
}
