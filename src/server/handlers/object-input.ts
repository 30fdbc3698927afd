import { inSlices } from '../../foundation/concurrency/in-slices.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { fieldPath, invalidObject } from '../../resource/object/invalid-object.ts';
import type { KubernetesObject, ObjectMeta } from '../../resource/object/object.ts';
import { isJsonObject } from '../../resource/object/own-property.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { compileRules } from '../../resource/schema/structural/validation-rules.ts';
import { unknownFieldHint } from '../../resource/schema/unknown-siblings.ts';
import type { DecodedText } from '../http/json-text.ts';
import { decodeBody } from '../http/request-body.ts';
import type { ApiRequest } from '../request/api-request.ts';
import type { Services } from './handler.ts';
import { fieldValidationOf } from './query-options.ts';

const MAX_REPORTED_FIELDS = 20;
/** Values of an object, nested ones included, unless its kind may have more. */
const MAX_VALUES_OF_OBJECT = 8000;
const MAX_NAME_LENGTH = 253;

/**
 * Validates an object that a client sent, or that a patch makes of a stored one: it must have the kind and the place that the URL names.
 * Unknown fields are dropped, and reported or refused as the client requests; `refuse` makes the error.
 */
export function acceptObject(
  request: ApiRequest,
  value: unknown,
  duplicates: readonly string[],
  refuse: (flaws: string) => SluiceError = (flaws) => refuseObject(request, flaws),
): KubernetesObject {
  const { kind } = request.resource;
  const typed = withoutEmptyType(value);
  checkKind(request, typed);
  checkSize(request, typed);
  const part = request.info.subResource === 'status' ? 'status' : undefined;
  const { object, unknownFields } = kind.parse(withNamespace(request, typed), part);
  reportFlaws(
    request,
    [
      ...duplicates.map((field) => `duplicate field ${JSON.stringify(field)}`),
      ...unknownFields
        .slice(0, MAX_REPORTED_FIELDS)
        .map((path) => `unknown field ${JSON.stringify(fieldPath(path))}${unknownFieldHint(kind.fields, typed, path)}`),
    ],
    refuse,
  );
  return placeAtUrl(request, object);
}

/** The body of a request as one value. */
export function decodeObject({ body, resource }: ApiRequest, { decodeProtobuf }: Services): DecodedText {
  return decodeBody(body, decodeProtobuf, maxBodyValues(resource.kind));
}

/** Compiles in slices what would block the event loop during the validation of an object. */
export async function prepareObject({ resource: { kind } }: ApiRequest, value: unknown): Promise<void> {
  if (kind.compilesRules === true) await inSlices(compileRules(value), () => undefined);
}

/** Values that a body may have: a client sends an object that it read with the owners of its fields. */
export function maxBodyValues({ maxValues }: Kind): number | undefined {
  return maxValues === undefined ? undefined : 3 * maxValues;
}

/**
 * LimitExceeded for an object with more values than its kind may have, without its field owners. Validating and storing takes some five
 * microseconds for each value, and without a limit an object could grow with every patch.
 */
export function checkSize({ resource: { kind } }: ApiRequest, value: unknown): void {
  const maxValues = kind.maxValues ?? MAX_VALUES_OF_OBJECT;
  let left = maxValues;
  const count = (part: unknown): void => {
    left -= 1;
    if (left < 0)
      throw new SluiceError(
        'LimitExceeded',
        `Request entity too large: the object would have more than ${maxValues} values`,
      );
    if (typeof part !== 'object' || part === null) return;
    for (const [name, field] of Object.entries(part)) if (name !== 'managedFields') count(field);
  };
  count(value);
}

/** In Go an empty text is an absent one: clients omit the type of an object that they decoded with its type known. */
function withoutEmptyType(value: unknown): unknown {
  if (!isJsonObject(value) || (value.apiVersion !== '' && value.kind !== '')) return value;
  const { apiVersion, kind, ...rest } = value;
  return { ...(apiVersion === '' ? {} : { apiVersion }), ...(kind === '' ? {} : { kind }), ...rest };
}

function checkKind(request: ApiRequest, value: unknown): void {
  const { kind } = request.resource;
  if (typeof value !== 'object' || Array.isArray(value))
    throw new SluiceError(
      'BadRequest',
      `the object provided is unrecognized (must be of type ${kind.kind}): it must be a JSON object`,
    );
  checkNamed(request, value);
  // The schema reports everything else.
  if (value === null) return;
  const { apiVersion = kind.apiVersion, kind: name = kind.kind } = value as { apiVersion?: unknown; kind?: unknown };
  noteName(request, value);
  if (apiVersion !== kind.apiVersion)
    throw new SluiceError(
      'BadRequest',
      `the API version in the data (${quoted(apiVersion)}) does not match the expected API version (${kind.apiVersion})`,
    );
  if (name !== kind.kind)
    throw new SluiceError(
      'BadRequest',
      `the kind in the data (${quoted(name)}) does not match the expected kind (${kind.kind})`,
    );
}

/** The body of a request to the URL of an object must contain its name, too. */
function checkNamed({ info }: ApiRequest, value: object | null): void {
  const { metadata } = (value ?? {}) as { readonly metadata?: { readonly name?: unknown } | null };
  if (info.name === '' || (metadata?.name ?? '') !== '') return;
  throw new SluiceError(
    'BadRequest',
    `the name of the object (${info.name} based on URL) was undeterminable: name must be provided`,
  );
}

/** Failures name the object in the body, also if it is not valid. */
function noteName(request: ApiRequest, value: object): void {
  const { metadata } = value as { metadata?: { name?: unknown } | null };
  if (typeof metadata?.name === 'string') request.objectName = metadata.name.slice(0, MAX_NAME_LENGTH);
}

function quoted(value: unknown): string {
  return String(typeof value === 'string' ? value : typeof value).slice(0, 100);
}

function reportFlaws(request: ApiRequest, flaws: readonly string[], refuse: (flaws: string) => SluiceError): void {
  const validation = fieldValidationOf(request.query);
  if (flaws.length === 0 || validation === 'Ignore') return;
  if (validation === 'Warn') {
    for (const flaw of flaws) request.warn(flaw);
    return;
  }
  throw refuse(`strict decoding error: ${flaws.join(', ')}`);
}

function refuseObject({ resource }: ApiRequest, flaws: string): SluiceError {
  const { kind, version } = resource.kind;
  const text = `${kind} in version ${JSON.stringify(version)} cannot be handled as a ${kind}: ${flaws}`;
  return new SluiceError('BadRequest', text);
}

/** The object with the namespace of the URL if it names none, so that the rules of its kind see where it will be. */
function withNamespace({ info, resource: { kind } }: ApiRequest, value: unknown): unknown {
  const { metadata } = (value ?? {}) as { readonly metadata?: unknown };
  if (!kind.namespaced || !isJsonObject(metadata) || (metadata.namespace ?? '') !== '') return value;
  return { ...(value as object), metadata: { ...metadata, namespace: info.namespace } };
}

/** The object with the name and the namespace of the URL. */
function placeAtUrl({ info, resource: { kind } }: ApiRequest, object: KubernetesObject): KubernetesObject {
  const { name, namespace = '', resourceVersion, uid } = object.metadata;
  if (info.name !== '' && name !== '' && name !== info.name)
    throw new SluiceError(
      'BadRequest',
      `the name of the object (${name}) does not match the name on the URL (${info.name})`,
    );
  if (kind.namespaced && namespace !== '' && namespace !== info.namespace)
    throw new SluiceError(
      'BadRequest',
      'the namespace of the provided object does not match the namespace sent on the request',
    );
  if (!kind.namespaced && namespace !== '') {
    const message = 'Forbidden: not allowed on this type';
    const path = ['metadata', 'namespace'];
    throw invalidObject(`${kind.kind} ${JSON.stringify(name)}`, [{ field: 'metadata.namespace', message, path }]);
  }
  const metadata: ObjectMeta = {
    ...object.metadata,
    name: name || info.name,
    namespace: kind.namespaced ? info.namespace : undefined,
    // Clients write an empty text for an unknown value.
    resourceVersion: resourceVersion || undefined,
    uid: uid || undefined,
  };
  return { ...object, metadata };
}
