import { retryConflicts } from '../../foundation/concurrency/retry-conflicts.ts';
import { isSluiceError, unlessMissing } from '../../foundation/sluice-error.ts';
import { keyOf, type Stored } from '../../resource/object/object.ts';
import { checkPreconditions, isDeletionDelayed } from '../../resource/storage/memory/object-rules.ts';
import { jsonResponse } from '../http/answer.ts';
import { SUCCESS_CODE, successStatus } from '../http/status.ts';
import type { ApiRequest } from '../request/api-request.ts';
import { admitWrite } from './admit-write.ts';
import { type RequestedDeletion, readDeletion } from './delete-options.ts';
import { type Handler, keyOfRequest, type Services } from './handler.ts';
import { asBadRequest, selectionOf } from './query-options.ts';
import { objectResponse } from './write.ts';

const PAGE_ITEMS = 500;
/** Deletions of a collection that are in progress at once. */
const MAX_CONCURRENT_DELETIONS = 16;

/** Deletes one object. Returns the object if its deletion is delayed, and a Status if it is deleted. */
export const deleteObject: Handler = async (request, services) => {
  const deletion = readDeletion(request, services);
  const { kind, storage } = request.resource;
  const live = await storage.get(request.context, keyOfRequest(request));
  const last = await deleteAdmitted(request, services, deletion, live);
  if (isDeletionDelayed(kind, last)) return objectResponse(request, services, 200, last);
  const { name, uid } = last.metadata;
  const group = kind.group === '' ? {} : { group: kind.group };
  return jsonResponse(SUCCESS_CODE, successStatus({ name, ...group, kind: kind.plural, uid }));
};

/**
 * Deletes all objects that a list would return, and returns them. Objects that are deleted concurrently are not a failure.
 */
export const deleteCollection: Handler = async (request, services) => {
  const { resource, context, info, query } = request;
  const deletion = readDeletion(request, services);
  const selection = selectionOf(info, query);
  const deleted: Stored[] = [];
  let version = '';
  let token: string | undefined;
  do {
    const page = await resource.storage
      .list(context, { ...selection, limit: PAGE_ITEMS, continue: token })
      .catch((error: unknown) => {
        throw asBadRequest(error);
      });
    for (let start = 0; start < page.items.length; start += MAX_CONCURRENT_DELETIONS) {
      const some = page.items.slice(start, start + MAX_CONCURRENT_DELETIONS);
      const removed = await Promise.all(
        some.map((object) => unlessMissing(deleteAdmitted(request, services, deletion, object))),
      );
      deleted.push(...removed.filter((object) => object !== undefined));
    }
    version = page.resourceVersion;
    token = page.continue;
  } while (token !== undefined);
  const view = services.presenter.view(resource.kind, request.representation, query);
  return services.presenter.list(view, { items: deleted, resourceVersion: version });
};

/**
 * Admits a deletion and deletes the very state that was admitted. Tries again with the next state if another writer was faster, unless the
 * request names the version to delete. Kube-apiserver does the same.
 */
async function deleteAdmitted(
  request: ApiRequest,
  services: Services,
  deletion: RequestedDeletion,
  found: Stored,
): Promise<Stored> {
  const { user, context, resource } = request;
  const { kind, storage } = resource;
  const { dryRun, ...options } = deletion;
  let known: Stored | undefined = found;
  let isOvertaken = false;
  const attempt = async () => {
    isOvertaken = false;
    const object = known ?? (await storage.get(context, keyOf(found)));
    known = undefined;
    checkPreconditions(kind, object, options);
    await admitWrite(request, services, { user, operation: 'delete', kind, subResource: '', object, old: object });
    isOvertaken = true;
    const { resourceVersion } = object.metadata;
    return storage.delete({ ...context, dryRun }, keyOf(object), { ...options, resourceVersion });
  };
  return retryConflicts(attempt, {
    signal: context.signal,
    isConflict: (error) => isOvertaken && options.resourceVersion === undefined && isSluiceError(error, 'Conflict'),
  });
}
