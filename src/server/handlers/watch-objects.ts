import { SluiceError } from '../../foundation/sluice-error.ts';
import type { KubernetesObject, Stored } from '../../resource/object/object.ts';
import { compileSelection } from '../../resource/storage/selection.ts';
import type { ListResult, Selection } from '../../resource/storage/storage.ts';
import type { View } from '../presentation/presenter.ts';
import type { ApiRequest } from '../request/api-request.ts';
import type { WatchSink } from '../watch/watch-streams.ts';
import type { Handler, Services } from './handler.ts';
import { checkVersion } from './list-version.ts';
import { badRequestIfInvalid, selectionOf } from './query-options.ts';
import { readWatchParameters, type WatchParameters } from './watch-options.ts';

/** Streams changes, one JSON object a line; if the client requests it, or names no version, after the present state. */
export const watchObjects: Handler = async (request, services) => {
  const { info, query, resource, user } = request;
  if (request.representation.encoding !== 'json')
    throw new SluiceError('NotAcceptable', 'only the following media types are accepted for watches: application/json');
  const parameters = readWatchParameters(query);
  const selection = selectionOf(info, query);
  badRequestIfInvalid(() => compileSelection(selection, resource.kind));
  const view = services.presenter.view(resource.kind, request.representation, query);
  const needsState = parameters.sendsInitialEvents || parameters.resourceVersion === undefined;
  const state = needsState ? await resource.storage.list(request.context, selection) : undefined;
  if (state !== undefined) checkVersion(state, query);
  const start = new WatchStart(parameters, state);
  return services.watches.open(user.name, parameters.timeoutSeconds, (sink) =>
    feed(request, services, view, selection, parameters, start, sink),
  );
};

/**
 * The start of a watch. The objects of the list can be taken once: a watch lasts for an hour, and a reference to the list would keep
 * thousands of objects in memory that have been changed or deleted since.
 */
class WatchStart {
  readonly resourceVersion: string;
  #items: readonly KubernetesObject[];

  constructor(parameters: WatchParameters, state: ListResult<KubernetesObject> | undefined) {
    this.resourceVersion = state?.resourceVersion ?? parameters.resourceVersion ?? '';
    this.#items = parameters.sendsInitialEvents ? (state?.items ?? []) : [];
  }

  takeItems(): readonly KubernetesObject[] {
    const items = this.#items;
    this.#items = [];
    return items;
  }
}

/**
 * Sends the initial objects of a watch. Returns whether the next line is the first one. It is a separate function so that no variable
 * outlives them.
 */
async function sendStart(
  { frames }: Services,
  view: View,
  start: WatchStart,
  { signal, write }: WatchSink,
): Promise<boolean> {
  let first = true;
  for (const object of start.takeItems()) {
    if (signal.aborted) return first;
    const wait = write(frames.single(view, 'ADDED', object as Stored, first));
    if (wait !== undefined) await wait;
    first = false;
  }
  return first;
}

async function feed(
  request: ApiRequest,
  services: Services,
  view: View,
  selection: Selection,
  parameters: WatchParameters,
  start: WatchStart,
  sink: WatchSink,
): Promise<void> {
  const { frames } = services;
  const { signal, write } = sink;
  const { resourceVersion } = start;
  try {
    let first = await sendStart(services, view, start, sink);
    if (signal.aborted) return;
    if (parameters.sendsInitialEventsEnd) {
      await write(frames.bookmark(view, resourceVersion, true, first));
      first = false;
    }
    const { storage } = request.resource;
    for await (const event of storage.watch(request.context, { ...selection, resourceVersion, signal })) {
      if (event.type === 'BOOKMARK') {
        if (parameters.bookmarks) await write(frames.bookmark(view, event.resourceVersion, false, first));
        else continue;
      } else {
        const { type, object } = event;
        // Only the first line of a table has its columns.
        const frame = first ? frames.single(view, type, object, true) : frames.change(view, type, object);
        const wait = write(frame);
        if (wait !== undefined) await wait;
      }
      first = false;
    }
  } catch (error) {
    await write(frames.error(services.reportFailure(request, error)));
  }
}
