import { retryConflicts } from '../../foundation/retry-conflicts.ts';
import { isSluiceError, unlessMissing } from '../../foundation/sluice-error.ts';
import { keyOf, type Stored } from '../../resource/object/object.ts';
import { checkPreconditions, isHeld } from '../../resource/storage/memory/object-rules.ts';
import { jsonAnswer } from '../http/answer.ts';
import { SUCCESS_CODE, successStatus } from '../http/status.ts';
import type { ApiRequest } from '../request/api-request.ts';
import { admitWrite } from './admit-write.ts';
import { type RequestedDeletion, readDeletion } from './delete-options.ts';
import { type Handler, keyOfRequest, type Services } from './handler.ts';
import { asBadRequest, selectionOf } from './query-options.ts';
import { shown } from './write.ts';

const PAGE = 500;
/** Deletions that wait for the storage together. */
const AT_ONCE = 16;

/** Answers with the object if something holds it still, and with a bare success if it is gone. */
export const deleteObject: Handler = async (request, services) => {
  const asked = readDeletion(request, services);
  const { kind, storage } = request.resource;
  const live = await storage.get(request.context, keyOfRequest(request));
  const last = await remove(request, services, asked, live);
  if (isHeld(kind, last)) return shown(request, services, 200, last);
  const { name, uid } = last.metadata;
  const group = kind.group === '' ? {} : { group: kind.group };
  return jsonAnswer(SUCCESS_CODE, successStatus({ name, ...group, kind: kind.plural, uid }));
};

/** Deletes all that a list would show, and shows it. What others delete meanwhile is deleted too. */
export const deleteCollection: Handler = async (request, services) => {
  const { resource, context, info, query } = request;
  const asked = readDeletion(request, services);
  const selection = selectionOf(info, query);
  const removed: Stored[] = [];
  let version = '';
  let token: string | undefined;
  do {
    const page = await resource.storage
      .list(context, { ...selection, limit: PAGE, continue: token })
      .catch((error: unknown) => {
        throw asBadRequest(error);
      });
    for (let start = 0; start < page.items.length; start += AT_ONCE) {
      const some = page.items.slice(start, start + AT_ONCE);
      const gone = await Promise.all(some.map((object) => unlessMissing(remove(request, services, asked, object))));
      removed.push(...gone.filter((object) => object !== undefined));
    }
    version = page.resourceVersion;
    token = page.continue;
  } while (token !== undefined);
  const view = services.presenter.view(resource.kind, request.representation, query);
  return services.presenter.list(view, { items: removed, resourceVersion: version });
};

/**
 * Deletes the very state of the object that was admitted, and tries again with the next one if another writer was faster, unless the
 * request names the version to delete. Kube-apiserver does the same.
 */
async function remove(
  request: ApiRequest,
  services: Services,
  asked: RequestedDeletion,
  found: Stored,
): Promise<Stored> {
  const { user, context, resource } = request;
  const { kind, storage } = resource;
  const { dryRun, ...options } = asked;
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
