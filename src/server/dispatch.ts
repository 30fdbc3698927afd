import { SluiceError } from '../foundation/sluice-error.ts';
import { resourceName } from '../resource/storage/memory/object-rules.ts';
import { READ_ONLY_VERBS, type ServedResource, SUBRESOURCE_VERBS } from './exchange/served-resources.ts';
import { deleteCollection, deleteObject } from './handlers/delete.ts';
import { patchObject } from './handlers/patch.ts';
import { getObject, getSubResource, listObjects } from './handlers/read.ts';
import type { Handler } from './handlers/resource-call.ts';
import { watchObjects } from './handlers/watch-objects.ts';
import { createObject, updateObject } from './handlers/write.ts';
import type { RequestInfo } from './http/request-path.ts';

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

/** The HTTP methods of verbs, by what a URL names. */
const OF_MANY: Readonly<Record<string, string>> = { list: 'GET', create: 'POST', deletecollection: 'DELETE' };
const OF_ONE: Readonly<Record<string, string>> = { get: 'GET', update: 'PUT', patch: 'PATCH', delete: 'DELETE' };

/**
 * What answers a verb on a resource. NotFound if the URL fits no resource of that kind, Unsupported (with the methods that are
 * allowed) if the resource has no such verb.
 */
export function handlerOf(info: RequestInfo, resource: ServedResource | undefined): Handler {
  if (resource === undefined) throw unknownResource();
  const { kind, storage } = resource;
  const { verb, namespace, subResource } = info;
  // A list may carry the name of the one object that it selects; what is created has none in its URL.
  const many = verb === 'create' ? info.name === '' : verb === 'watch' || Object.hasOwn(OF_MANY, verb);
  const ofNamespaceItself = info.group === '' && info.resource === 'namespaces';
  if (!kind.namespaced && namespace !== '' && !ofNamespaceItself) throw unknownResource();
  if (kind.namespaced && namespace === '' && !many) throw unknownResource();
  const isReadOnly = storage.readOnlySubResources?.some(({ name }) => name === subResource) === true;
  if (subResource !== '' && !isReadOnly && !storage.subResources.includes(subResource)) throw unknownResource();
  const verbs = subResource === '' ? resource.verbs : isReadOnly ? READ_ONLY_VERBS : SUBRESOURCE_VERBS;
  const methods = many || info.name === '' ? OF_MANY : OF_ONE;
  // What is created or deleted in all namespaces at once would be in none.
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

export function unknownResource(): SluiceError {
  return new SluiceError('NotFound', 'the server could not find the requested resource');
}

export function methodNotAllowed(
  methods: readonly string[],
  message = 'the server does not allow this method on the requested resource',
): SluiceError<{ readonly allow: string }> {
  return new SluiceError('Unsupported', message, { details: { allow: methods.join(', ') } });
}
