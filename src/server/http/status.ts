import { ERROR_CODES, type ErrorCode, isSluiceError, type SluiceError } from '../../foundation/sluice-error.ts';

/** One cause of a failure, as in a Kubernetes Status. */
interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

export interface StatusDetails {
  readonly name?: string;
  readonly group?: string;
  /** The plural of the resource, or the kind where an object is invalid. */
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly StatusCause[];
  readonly retryAfterSeconds?: number;
}

/** `Status` of `v1`: the Kubernetes API returns it for a failure, and where there is no object to return. */
export interface Status {
  readonly kind: 'Status';
  readonly apiVersion: 'v1';
  readonly metadata: Readonly<Record<string, never>>;
  readonly status: 'Success' | 'Failure';
  readonly message?: string;
  readonly reason?: string;
  readonly details?: StatusDetails;
  readonly code: number;
}

/** The subject of a failed request. */
export interface StatusSubject {
  readonly group: string;
  /** The plural. */
  readonly resource: string;
  readonly kind?: string | undefined;
  readonly name: string;
}

/** More causes help no reader, and hostile input must not make a response grow. */
const MAX_CAUSES = 100;
const MAX_MESSAGE_LENGTH = 16 * 1024;

/** The prefix of a cause's message names its reason; this table has the reasons of Kubernetes. */
const CAUSE_REASONS: readonly (readonly [prefix: string, reason: string])[] = [
  ['Required value', 'FieldValueRequired'],
  ['Unsupported value', 'FieldValueNotSupported'],
  ['Forbidden', 'FieldValueForbidden'],
  ['Duplicate value', 'FieldValueDuplicate'],
  ['Not found', 'FieldValueNotFound'],
  ['Too long', 'FieldValueTooLong'],
  ['Too many', 'FieldValueTooMany'],
  ['Invalid type', 'FieldValueTypeInvalid'],
];

/** Errors about one object or resource; all others are about the request. */
const ABOUT_OBJECTS: ReadonlySet<ErrorCode> = new Set([
  'NotFound',
  'AlreadyExists',
  'Conflict',
  'Busy',
  'Refused',
  'PushRefused',
  'InvalidInput',
  'Unsupported',
]);

export const SUCCESS_CODE = 200;

export function successStatus(details: StatusDetails): Status {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details, code: SUCCESS_CODE };
}

/**
 * The Status of anything that was thrown. An error that is no SluiceError is a defect: the client only gets `reference`, by which the log
 * names the same failure.
 */
export function failureStatus(error: unknown, subject: StatusSubject | undefined, reference: string): Status {
  const known = isSluiceError(error) ? error : undefined;
  const { reason, status: code } = ERROR_CODES[known?.code ?? 'Internal'];
  const details = known === undefined ? undefined : detailsOf(known, subject);
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: shortened(messageOf(known, reference)),
    reason,
    ...(details === undefined ? {} : { details }),
    code,
  };
}

function messageOf(error: SluiceError | undefined, reference: string): string {
  if (error === undefined) return `Internal error occurred: see the server's log for request ${reference}`;
  return ERROR_CODES[error.code].status === 500 ? `Internal error occurred: ${error.message}` : error.message;
}

function detailsOf(error: SluiceError, subject: StatusSubject | undefined): StatusDetails | undefined {
  // An error may name its object; other details are internal.
  const given = (typeof error.details === 'object' ? error.details : null) as
    | (StatusDetails & { readonly causes?: unknown })
    | null;
  const causes = Array.isArray(given?.causes) ? given.causes.slice(0, MAX_CAUSES).map(causeOf) : [];
  // kubectl shows the message of an invalid object only if there are no causes.
  const isUnexplained = error.code === 'InvalidInput' && causes.length === 0;
  const about = ABOUT_OBJECTS.has(error.code) && !isUnexplained ? subject : undefined;
  const retryAfterSeconds = given?.retryAfterSeconds ?? (error.code === 'TooManyRequests' ? 1 : undefined);
  const name = given?.name ?? about?.name ?? '';
  const group = given?.group ?? about?.group ?? '';
  const kind = given?.kind ?? (error.code === 'InvalidInput' ? about?.kind : undefined) ?? about?.resource ?? '';
  if (name === '' && kind === '' && causes.length === 0 && retryAfterSeconds === undefined) return undefined;
  return {
    ...(name === '' ? {} : { name }),
    ...(group === '' ? {} : { group }),
    ...(kind === '' ? {} : { kind }),
    ...(causes.length === 0 ? {} : { causes }),
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  };
}

function causeOf({ reason, message = '', field }: StatusCause): StatusCause {
  const byText = CAUSE_REASONS.find(([prefix]) => message.startsWith(prefix))?.[1] ?? 'FieldValueInvalid';
  return {
    reason: reason ?? byText,
    message: shortened(message),
    ...(field === undefined || field === '' ? {} : { field }),
  };
}

function shortened(text: string): string {
  return text.length > MAX_MESSAGE_LENGTH ? `${text.slice(0, MAX_MESSAGE_LENGTH)}…` : text;
}
