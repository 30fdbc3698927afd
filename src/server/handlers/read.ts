import { SluiceError } from '../../foundation/sluice-error.ts';
import type { KubernetesObject } from '../../resource/object.ts';
import type { ListResult } from '../../resource/storage.ts';
import { asBadRequest, countOf, invalidOptions, selectionOf } from './query-options.ts';
import { type Handler, keyOfCall } from './resource-call.ts';

/** One object; a sub-resource shows the object that it belongs to. */
export const getObject: Handler = async (call, { presenter }) => {
  const { resource, representation, query } = call;
  const object = await resource.storage.get(call.context, keyOfCall(call));
  return presenter.object(presenter.view(resource.kind, representation, query), 200, object);
};

/** A page of objects, or all of them. */
export const listObjects: Handler = async (call, { presenter }) => {
  const { info, query, resource } = call;
  const view = presenter.view(resource.kind, call.representation, query);
  checkVersionOptions(query);
  const options = {
    ...selectionOf(info, query),
    limit: countOf(query, 'limit'),
    continue: query.get('continue') || undefined,
  };
  const result = await resource.storage.list(call.context, options).catch((error: unknown) => {
    throw asBadRequest(error);
  });
  checkVersion(result, query);
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

/** Lists show the present state, so that "not older than" holds for every version that was ever given out. */
function checkVersion(
  { resourceVersion: current }: Pick<ListResult<KubernetesObject>, 'resourceVersion'>,
  query: URLSearchParams,
): void {
  const asked = query.get('resourceVersion') ?? '';
  if (asked === '' || asked === '0' || asked === current || (query.get('continue') ?? '') !== '') return;
  if (isLater(asked, current))
    throw new SluiceError('Timeout', `Too large resource version: ${asked.slice(0, 40)}, current: ${current}`, {
      details: {
        causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
        retryAfterSeconds: 1,
      },
    });
  if (query.get('resourceVersionMatch') === 'Exact')
    throw new SluiceError('Expired', 'the state of that resourceVersion is not kept; list without "Exact"');
}

/** Versions are compared where both are numbers; others have no order. */
function isLater(asked: string, current: string): boolean {
  if (!/^\d{1,19}$/.test(asked) || !/^\d{1,19}$/.test(current)) return false;
  return BigInt(asked) > BigInt(current);
}
