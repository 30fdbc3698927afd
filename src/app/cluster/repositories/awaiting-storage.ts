import { DEFAULT_NAMESPACE, type KubernetesObject, type ObjectKey } from '../../../resource/object/object.ts';
import type { RequestContext } from '../../../resource/object/request-context.ts';
import type { ListOptions, Selection, Storage } from '../../../resource/storage/storage.ts';
import type { InitialOpenings } from '../../service/initial-openings.ts';
import type { UnreadRepositories } from './unread-repositories.ts';

/**
 * A storage of objects in repositories, for a leader that serves before it has read all of them. Each request waits for the repositories that
 * it is about, so that a client finds everything that the previous leader has acknowledged; a list fails if it would lack packages that
 * clients may know. The names of the objects begin with that of their repository.
 */
export function awaitingStorage<T extends KubernetesObject>(
  inner: Storage<T>,
  openings: InitialOpenings,
  unread: Pick<UnreadRepositories, 'expectNone'>,
): Storage<T> {
  const whenRead = (key: ObjectKey, { signal }: RequestContext) => openings.whenRead(repositoryOf(key), signal);
  const whenAllRead = ({ signal }: RequestContext, selection: Selection = {}) => {
    const repository = repositoryIn(selection);
    const wanted = namespaceIn(selection);
    if (wanted !== undefined && repository !== undefined)
      return openings.whenRead({ namespace: wanted, name: repository }, signal);
    const selects = ({ namespace, name }: ObjectKey) =>
      (wanted === undefined || wanted === (namespace ?? DEFAULT_NAMESPACE)) &&
      (repository === undefined || repository === name);
    return openings.whenAllRead(selects, signal);
  };
  const { patch, apply, afterPatch, tableWarnings } = inner;
  return {
    kind: inner.kind,
    subResources: inner.subResources,
    ...(inner.readOnlySubResources === undefined
      ? {}
      : {
          readOnlySubResources: inner.readOnlySubResources.map((reading) => ({
            ...reading,
            read: async (context: RequestContext, key: ObjectKey, parameters: URLSearchParams) => {
              // Some compare with packages of other repositories.
              await whenAllRead(context, { namespace: key.namespace });
              return reading.read(context, key, parameters);
            },
          })),
        }),
    ...(inner.updatesNeedVersion === undefined ? {} : { updatesNeedVersion: inner.updatesNeedVersion }),
    ...(inner.ignoresVersionOnCreate === undefined ? {} : { ignoresVersionOnCreate: inner.ignoresVersionOnCreate }),
    ...(inner.verbs === undefined ? {} : { verbs: inner.verbs }),
    ...(inner.applyNeverRemoves === undefined ? {} : { applyNeverRemoves: inner.applyNeverRemoves }),
    ...(afterPatch === undefined ? {} : { afterPatch: (live: T, patched: T) => afterPatch.call(inner, live, patched) }),
    ...(tableWarnings === undefined
      ? {}
      : { tableWarnings: (namespace: string | undefined) => tableWarnings.call(inner, namespace) }),
    async get(context, key) {
      await whenRead(key, context);
      return inner.get(context, key);
    },
    async list(context, options: ListOptions = {}) {
      await whenAllRead(context, options);
      // An initial watch lists too.
      unread.expectNone({ namespace: namespaceIn(options), repository: repositoryIn(options) });
      return inner.list(context, options);
    },
    // It begins at a version that a list or a get of this leader has returned.
    watch: (context, options) => inner.watch(context, options),
    async create(context, object) {
      const { repository } = (object as { readonly spec?: { readonly repository?: string } }).spec ?? {};
      const { namespace = DEFAULT_NAMESPACE } = object.metadata;
      if (repository !== undefined) await openings.whenRead({ namespace, name: repository }, context.signal);
      return inner.create(context, object);
    },
    async update(context, object) {
      // The removal of the last finalizer deletes it.
      if (object.metadata.deletionTimestamp === undefined) await whenRead(object.metadata, context);
      else await whenAllRead(context);
      return inner.update(context, object);
    },
    async updateSubResource(context, name, object) {
      await whenRead(object.metadata, context);
      return inner.updateSubResource(context, name, object);
    },
    async delete(context, key, options) {
      // Packages of other repositories may come from it.
      await whenAllRead(context);
      return inner.delete(context, key, options);
    },
    ...(patch === undefined
      ? {}
      : {
          patch: async (context, key, ...rest) => {
            await whenRead(key, context);
            return patch.call(inner, context, key, ...rest);
          },
        }),
    ...(apply === undefined
      ? {}
      : {
          apply: async (context, configuration, options) => {
            await whenRead(configuration.metadata, context);
            return apply.call(inner, context, configuration, options);
          },
        }),
  };
}

/** The name of the one repository that a selection is about; undefined if it is not about one. */
function repositoryIn(selection: Selection): string | undefined {
  return required(selection, 'spec.repository') ?? required(selection, 'metadata.name')?.split('.', 1)[0];
}

/** The one namespace that a selection is about; undefined if it is not about one. */
function namespaceIn(selection: Selection): string | undefined {
  return selection.namespace ?? required(selection, 'metadata.namespace');
}

function required({ fieldSelector }: Selection, wanted: string): string | undefined {
  return fieldSelector?.requirements.find(({ path, operator }) => path === wanted && operator === '=')?.value;
}

/** The repository that the name of an object begins with: names of repositories have no dot. */
function repositoryOf({ namespace = DEFAULT_NAMESPACE, name }: ObjectKey): ObjectKey {
  return { namespace, name: name.split('.', 1)[0] ?? '' };
}
