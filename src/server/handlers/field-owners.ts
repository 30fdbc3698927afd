import { timestamp } from '../../foundation/time/clock.ts';
import { trackUpdate } from '../../resource/apply/track-update.ts';
import type { KubernetesObject, Stored } from '../../resource/object/object.ts';
import { structuralSchemaOf } from '../../resource/schema/schema-of-kind.ts';
import type { ApiRequest } from '../request/api-request.ts';
import type { Services } from './handler.ts';
import { invalidOptions } from './query-options.ts';

const MAX_MANAGER_LENGTH = 128;

/** The object to store, with the fields that its writer owns now. */
export function withOwners(
  request: ApiRequest,
  { clock }: Services,
  live: Stored | undefined,
  object: KubernetesObject,
): KubernetesObject {
  const managedFields = trackUpdate({
    ...writePlace(request),
    before: live,
    after: object,
    manager: managerOf(request),
    now: timestamp(clock.now()),
  });
  if (managedFields.length > 0 || live?.metadata.managedFields !== undefined)
    return { ...object, metadata: { ...object.metadata, managedFields } };
  const { managedFields: _none, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** Returns the part of the object that a request writes, as field ownership describes it. */
export function writePlace({ resource: { kind }, info: { subResource } }: ApiRequest) {
  return {
    schema: structuralSchemaOf(kind),
    apiVersion: kind.apiVersion,
    hasStatus: kind.strategy.hasStatus,
    subResource,
  };
}

/** The field manager that the request names; else the program of the User-Agent header, such as `kubectl`. */
export function managerOf(request: ApiRequest): string {
  const given = request.query.get('fieldManager') ?? '';
  if (given.length > MAX_MANAGER_LENGTH)
    throw invalidOptions('WriteOptions', 'fieldManager', `Too long: may not be more than ${MAX_MANAGER_LENGTH} bytes`);
  if (/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u.test(given))
    throw invalidOptions('WriteOptions', 'fieldManager', 'Invalid value: should only contain printable characters');
  if (given !== '') return given;
  const [program = ''] = request.header('user-agent').split('/', 1);
  return program.replace(/[^\x20-\x7e]/g, '').slice(0, MAX_MANAGER_LENGTH) || 'unknown';
}
