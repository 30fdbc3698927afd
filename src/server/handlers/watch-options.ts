import { isOn } from '../http/request-path.ts';
import { countOf, invalidOptions } from './query-options.ts';

/** The parameters of a watch. */
export interface WatchParameters {
  /** Changes after this version are sent; if undefined, those after the current state. */
  readonly resourceVersion: string | undefined;
  /** True if the current objects are sent, as ADDED, before the changes. */
  readonly sendsInitialEvents: boolean;
  /** True if a bookmark is sent at the end of the initial events. */
  readonly sendsInitialEventsEnd: boolean;
  readonly bookmarks: boolean;
  readonly timeoutSeconds: number | undefined;
}

/** Reads the parameters of a watch. Throws InvalidInput if they contradict each other. */
export function readWatchParameters(query: URLSearchParams): WatchParameters {
  const version = query.get('resourceVersion') ?? '';
  const match = query.get('resourceVersionMatch') ?? '';
  const initial = query.get('sendInitialEvents') ?? '';
  const bookmarks = isOn(query, 'allowWatchBookmarks');
  if (initial === '' && match !== '')
    throw invalidOptions(
      'ListOptions',
      'resourceVersionMatch',
      'Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
    );
  if (initial !== '' && match !== 'NotOlderThan')
    throw invalidOptions(
      'ListOptions',
      'resourceVersionMatch',
      'Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
    );
  // Without a version, or with version 0, a watch first sends the current objects, unless sendInitialEvents is false.
  const anyVersion = version === '' || version === '0';
  const sendsInitialEvents = initial === '' ? anyVersion : isOn(query, 'sendInitialEvents');
  return {
    resourceVersion: anyVersion ? undefined : version,
    sendsInitialEvents,
    sendsInitialEventsEnd: initial !== '' && sendsInitialEvents && bookmarks,
    bookmarks,
    timeoutSeconds: countOf(query, 'timeoutSeconds'),
  };
}
