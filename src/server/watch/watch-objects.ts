import { SluiceError } from '../../foundation/sluice-error.ts';
import type { KubernetesObject } from '../../resource/object.ts';
import { compileSelection } from '../../resource/selection.ts';
import type { ListResult, Selection } from '../../resource/storage.ts';
import { checkVersion } from '../handlers/list-version.ts';
import type { View } from '../handlers/presenter.ts';
import { badRequestIfInvalid, selectionOf } from '../handlers/query-options.ts';
import type { Handler, ResourceCall, Services } from '../handlers/resource-call.ts';
import { type AskedWatch, askedWatch } from './watch-options.ts';
import type { WatchSink } from './watch-streams.ts';

/** Tells changes as they come, one JSON object a line; if asked, or if no version is named, the present state first. */
export const watchObjects: Handler = async (call, services) => {
  const { info, query, resource, user } = call;
  if (call.representation.encoding !== 'json')
    throw new SluiceError('NotAcceptable', 'only the following media types are accepted for watches: application/json');
  const asked = askedWatch(query);
  const selection = selectionOf(info, query);
  badRequestIfInvalid(() => compileSelection(selection, resource.kind));
  const view = services.presenter.view(resource.kind, call.representation, query);
  const needsState = asked.initialEvents || asked.resourceVersion === undefined;
  const state = needsState ? await resource.storage.list(call.context, selection) : undefined;
  if (state !== undefined) checkVersion(state, query);
  return services.watches.open(user.name, asked.timeoutSeconds, (sink) =>
    feed(call, services, view, selection, asked, state, sink),
  );
};

async function feed(
  call: ResourceCall,
  services: Services,
  view: View,
  selection: Selection,
  asked: AskedWatch,
  state: ListResult<KubernetesObject> | undefined,
  { signal, write }: WatchSink,
): Promise<void> {
  const { frames } = services;
  let first = true;
  try {
    for (const object of asked.initialEvents ? (state?.items ?? []) : []) {
      if (signal.aborted) return;
      const wait = write(frames.single(view, 'ADDED', object, first));
      if (wait !== undefined) await wait;
      first = false;
    }
    const resourceVersion = state?.resourceVersion ?? asked.resourceVersion ?? '';
    if (asked.marksInitialEnd) {
      await write(frames.bookmark(view, resourceVersion, true, first));
      first = false;
    }
    const { storage } = call.resource;
    for await (const event of storage.watch(call.context, { ...selection, resourceVersion, signal })) {
      if (event.type === 'BOOKMARK') {
        if (asked.bookmarks) await write(frames.bookmark(view, event.resourceVersion, false, first));
        else continue;
      } else {
        const { type, object } = event;
        // Only the first line of a table tells its columns.
        const frame = first ? frames.single(view, type, object, true) : frames.change(view, type, object);
        const wait = write(frame);
        if (wait !== undefined) await wait;
      }
      first = false;
    }
  } catch (error) {
    await write(frames.error(services.failure(error)));
  }
}
