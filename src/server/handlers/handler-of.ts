import { resourceName } from '../../resource/storage/memory/object-rules.ts';
import { methodNotAllowed, unknownResource } from '../http/request-errors.ts';
import type { RequestInfo } from '../http/request-path.ts';
import { READ_ONLY_VERBS, type ServedResource, SUBRESOURCE_VERBS } from '../request/served-resources.ts';
import { deleteCollection, deleteObject } from './delete.ts';
import type { Handler } from './handler.ts';
import { patchObject } from './patch.ts';
import { getObject, getSubResource, listObjects } from './read.ts';
import { watchObjects } from './watch-objects.ts';
import { createObject, updateObject } from './write.ts';

const HANDLERS: Readonly<Record<string, Handler>> = {
  get: getObject,
  list: listObjects,
  watch: watchObjects,
  create: createObject,
  update: updateObject,
  patch: patchObject,
  delete: deleteObject,
  deletecollection: deleteCollection,
};

/** The HTTP methods of verbs, for URLs of many objects and of one. */
const OF_MANY: Readonly<Record<string, string>> = { list: 'GET', create: 'POST', deletecollection: 'DELETE' };
const OF_ONE: Readonly<Record<string, string>> = { get: 'GET', update: 'PUT', patch: 'PATCH', delete: 'DELETE' };

/**
 * The handler of a verb on a resource. NotFound if the URL fits no resource of that kind, Unsupported (with the allowed methods) if the
 * resource has no such verb.
 */
export function handlerOf(info: RequestInfo, resource: ServedResource | undefined): Handler {
  if (resource === undefined) throw unknownResource();
  const { kind, storage } = resource;
  const { verb, namespace, subResource } = info;
  // A list may name the one object that it selects; the URL of a create has no name.
  const many = verb === 'create' ? info.name === '' : verb === 'watch' || Object.hasOwn(OF_MANY, verb);
  const ofNamespaceItself = info.group === '' && info.resource === 'namespaces';
  if (!kind.namespaced && namespace !== '' && !ofNamespaceItself) throw unknownResource();
  if (kind.namespaced && namespace === '' && !many) throw unknownResource();
  const isReadOnly = storage.readOnlySubResources?.some(({ name }) => name === subResource) === true;
  if (subResource !== '' && !isReadOnly && !storage.subResources.includes(subResource)) throw unknownResource();
  const verbs = subResource === '' ? resource.verbs : isReadOnly ? READ_ONLY_VERBS : SUBRESOURCE_VERBS;
  const methods = many || info.name === '' ? OF_MANY : OF_ONE;
  // Objects of a namespace cannot be created or deleted in all namespaces at once.
  const nowhere = kind.namespaced && namespace === '';
  const allowed = Object.keys(methods).filter((known) => verbs.includes(known) && !(nowhere && known !== 'list'));
  const handler = isReadOnly && verb === 'get' ? getSubResource : HANDLERS[verb];
  const isAllowed = verb === 'watch' ? verbs.includes('watch') : allowed.includes(verb);
  if (handler !== undefined && isAllowed) return handler;
  const lacksVerb = handler !== undefined && subResource === '' && !verbs.includes(verb);
  const message = lacksVerb ? `${verb} is not supported on resources of kind "${resourceName(kind)}"` : undefined;
  throw methodNotAllowed(
    allowed.map((known) => methods[known] ?? ''),
    message,
  );
}
