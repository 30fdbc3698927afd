import { SluiceError } from '../../foundation/sluice-error.ts';
import { encodedResponse } from '../http/answer.ts';
import type { ApiRequest } from '../request/api-request.ts';
import { type Handler, keyOfRequest } from './handler.ts';
import { checkNumber, checkVersion, isLaterVersion } from './list-version.ts';
import { asBadRequest, countOf, invalidOptions, selectionOf } from './query-options.ts';

/** One object; a sub-resource returns the object that it belongs to. */
export const getObject: Handler = async (request, { presenter }) => {
  const { resource, representation, query } = request;
  const requested = query.get('resourceVersion') ?? '';
  checkNumber(requested);
  const object = await resource.storage.get(request.context, keyOfRequest(request));
  // The state of an object is not older than its own version; for a later one the version of the storage counts.
  if (isLaterVersion(requested, object.metadata.resourceVersion)) await expectReached(request, requested);
  warnReader(request);
  return presenter.object(presenter.view(resource.kind, representation, query), 200, object);
};

/** A table is for users, who may not look at what the objects of other kinds say. */
function warnReader(request: ApiRequest): void {
  const { representation, resource, info } = request;
  if (representation.as !== 'table') return;
  for (const text of resource.storage.tableWarnings?.(info.namespace || undefined) ?? []) request.warn(text);
}

/** Timeout, as of lists, for a version that the storage has not reached. */
async function expectReached({ resource, info, context }: ApiRequest, resourceVersion: string): Promise<void> {
  const page = { ...selectionOf(info, new URLSearchParams()), limit: 1 };
  checkVersion(await resource.storage.list(context, page), new URLSearchParams({ resourceVersion }));
}

/** Returns a read-only sub-resource of an object. */
export const getSubResource: Handler = async (request) => {
  const { resource, info, query, context, representation } = request;
  const subResource = resource.storage.readOnlySubResources?.find(({ name }) => name === info.subResource);
  if (subResource === undefined) throw new SluiceError('Internal', `no sub-resource ${info.subResource} is served`);
  const content = await subResource.read(context, keyOfRequest(request), query);
  return encodedResponse(200, JSON.stringify(content), representation.encoding);
};

/** A page of objects, or all of them. */
export const listObjects: Handler = async (request, { presenter }) => {
  const { info, query, resource } = request;
  const view = presenter.view(resource.kind, request.representation, query);
  checkVersionOptions(query);
  // A list takes as long as any request. The parameter must be valid all the same.
  countOf(query, 'timeoutSeconds');
  const options = {
    ...selectionOf(info, query),
    limit: countOf(query, 'limit'),
    continue: query.get('continue') || undefined,
  };
  const result = await resource.storage.list(request.context, options).catch((error: unknown) => {
    throw asBadRequest(error);
  });
  checkVersion(result, query);
  warnReader(request);
  return presenter.list(view, result);
};

function checkVersionOptions(query: URLSearchParams): void {
  const version = query.get('resourceVersion') ?? '';
  const match = query.get('resourceVersionMatch') ?? '';
  const refuse = (field: string, message: string) => {
    throw invalidOptions('ListOptions', field, message);
  };
  if ((query.get('sendInitialEvents') ?? '') !== '')
    refuse('sendInitialEvents', 'Forbidden: sendInitialEvents is forbidden for list');
  if ((query.get('continue') ?? '') !== '' && version !== '' && version !== '0')
    throw new SluiceError('BadRequest', 'specifying resource version is not allowed when using continue');
  if (match !== '') {
    if (match !== 'Exact' && match !== 'NotOlderThan')
      refuse(
        'resourceVersionMatch',
        `Unsupported value: ${JSON.stringify(match.slice(0, 64))}: supported values: "Exact", "NotOlderThan"`,
      );
    if (version === '')
      refuse('resourceVersionMatch', 'Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided');
    if (match === 'Exact' && version === '0')
      refuse('resourceVersionMatch', 'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"');
    if ((query.get('continue') ?? '') !== '')
      refuse('resourceVersionMatch', 'Forbidden: resourceVersionMatch is forbidden when continue is provided');
  }
}
