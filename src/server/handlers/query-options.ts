import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { type FieldCause, invalidObject } from '../../resource/object/invalid-object.ts';
import { fieldSelector } from '../../resource/selector/field-selector.ts';
import { labelSelector } from '../../resource/selector/label-selector.ts';
import type { Selection } from '../../resource/storage/storage.ts';
import type { RequestInfo } from '../http/request-path.ts';

const FIELD_VALIDATIONS = ['Ignore', 'Warn', 'Strict'] as const;
export type FieldValidation = (typeof FIELD_VALIDATIONS)[number];

/** Returns the selection of a list or a watch. BadRequest for invalid selectors. */
export function selectionOf(info: RequestInfo, query: URLSearchParams): Selection {
  const labels = query.get('labelSelector');
  const fields = query.get('fieldSelector');
  return badRequestIfInvalid(() => ({
    namespace: info.namespace === '' ? undefined : info.namespace,
    labelSelector: labels === null ? undefined : labelSelector(labels),
    fieldSelector: fields === null ? undefined : fieldSelector(fields),
  }));
}

/** An error in a URL is a bad request, not an invalid object. */
export function badRequestIfInvalid<Result>(action: () => Result): Result {
  try {
    return action();
  } catch (error) {
    throw asBadRequest(error);
  }
}

export function asBadRequest(error: unknown): unknown {
  return isSluiceError(error, 'InvalidInput') ? new SluiceError('BadRequest', error.message, { cause: error }) : error;
}

/** A parameter that is a number and not negative; undefined if it is missing or empty. */
export function countOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === '') return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new SluiceError(
    'BadRequest',
    `the parameter ${name} must be a number that is not negative, not ${JSON.stringify(text.slice(0, 40))}`,
  );
}

/** True if nothing is to be stored. */
export function dryRunOf(query: URLSearchParams): boolean {
  const values = query.getAll('dryRun');
  const wrong = values.find((value) => value !== 'All');
  if (wrong !== undefined) throw invalidOption('dryRun', wrong, ['All']);
  return values.length > 0;
}

/** Returns how unknown fields are treated. */
export function fieldValidationOf(query: URLSearchParams): FieldValidation {
  const text = query.get('fieldValidation') ?? '';
  if (text === '') return 'Warn';
  const known = FIELD_VALIDATIONS.find((value) => value === text);
  if (known === undefined) throw invalidOption('fieldValidation', text, FIELD_VALIDATIONS);
  return known;
}

/** The error of options that contradict each other or have an unsupported value. */
export function invalidOptions(kind: string, field: string, message: string): SluiceError {
  const cause: FieldCause = { field, message, path: [field] };
  return invalidObject(`${kind}.meta.k8s.io ""`, [cause]);
}

function invalidOption(field: string, value: string, supported: readonly string[]): SluiceError {
  const list = supported.map((one) => JSON.stringify(one)).join(', ');
  const message = `Unsupported value: ${JSON.stringify(value.slice(0, 64))}: supported values: ${list}`;
  return invalidOptions('WriteOptions', field, message);
}
