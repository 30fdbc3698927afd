import { isOn } from '../http/request-path.ts';
import { countOf, invalidOptions } from './query-options.ts';

/** The parameters of a watch. */
export interface WatchParameters {
  /** The version after which changes are sent; undefined to send changes after the current state. */
  readonly resourceVersion: string | undefined;
  /** True if the current objects are sent, as ADDED, before the changes. */
  readonly initialEvents: boolean;
  /** True if a bookmark marks the end of the initial events. */
  readonly marksInitialEnd: boolean;
  readonly bookmarks: boolean;
  readonly timeoutSeconds: number | undefined;
}

/** Reads the parameters of a watch; InvalidInput where they contradict each other. */
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
  // Without a version a watch sends the present state first, unless the client declines it.
  const anyVersion = version === '' || version === '0';
  const initialEvents = initial === '' ? anyVersion : isOn(query, 'sendInitialEvents');
  return {
    resourceVersion: anyVersion ? undefined : version,
    initialEvents,
    marksInitialEnd: initial !== '' && initialEvents && bookmarks,
    bookmarks,
    timeoutSeconds: countOf(query, 'timeoutSeconds'),
  };
}
