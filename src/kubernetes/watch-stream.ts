import { SluiceError } from '../foundation/sluice-error.ts';
import type { KubernetesObject } from '../resource/object/object.ts';
import type { Kind } from '../resource/schema/kind.ts';
import type { WatchEvent } from '../resource/storage/storage.ts';
import { quietWatch } from '../resource/watch/quiet-watch.ts';
import type { Connection } from './connection/connection.ts';
import type { RequestHeaders } from './connection/request-headers.ts';
import { statusError } from './connection/status-error.ts';
import { LineReader } from './line-reader.ts';
import { readListedObject } from './read-object.ts';

export interface WatchStreamOptions<T extends KubernetesObject> {
  readonly connection: Connection;
  readonly kind: Kind<T>;
  /** With the query. */
  readonly path: string;
  readonly headers: RequestHeaders;
  readonly signal: AbortSignal;
  /** Milliseconds without data, not even a bookmark, after which the server counts as disconnected. */
  readonly silenceLimit: number;
  /** The largest event that is read. Bytes. */
  readonly eventBytes: number;
}

/**
 * The events of one watch. Ends without an error when the signal aborts or the server ends the watch. Throws Expired if the server
 * no longer has the version, Timeout if it is silent, Unavailable if the connection breaks or the data is no
 * event, and other errors of the server.
 */
export async function* watchStream<T extends KubernetesObject>(
  options: WatchStreamOptions<T>,
): AsyncGenerator<WatchEvent<T>> {
  const { connection, kind, path, headers, signal } = options;
  if (signal.aborted) return;
  const end = new AbortController();
  const forward = () => end.abort();
  signal.addEventListener('abort', forward);
  let [silent, isOpen] = [false, false];
  // Only while this waits: a slow reader is no silence of the server.
  const inTime = async <Result>(wait: Promise<Result>): Promise<Result> => {
    const cancel = connection.clock.schedule(options.silenceLimit, () => {
      silent = true;
      end.abort();
    });
    return wait.finally(cancel);
  };
  try {
    const chunks = await inTime(connection.open({ method: 'GET', signal: end.signal, path, headers }));
    isOpen = true;
    const lines = new LineReader(options.eventBytes);
    for (;;) {
      const { done, value } = await inTime(chunks.next());
      for (const line of done === true ? [lines.rest()] : lines.push(value)) {
        const event = readEvent(kind, line);
        if (event !== undefined) yield event;
        if (signal.aborted) return;
      }
      if (done === true) return;
    }
  } catch (error) {
    if (signal.aborted) return;
    const seconds = `${options.silenceLimit / 1000} s`;
    const { server } = connection.access;
    if (silent && isOpen) throw quietWatch(`${server} sent nothing for ${seconds} on the watch of ${kind.plural}`);
    if (silent)
      throw new SluiceError('Timeout', `${server} did not begin the watch of ${kind.plural} within ${seconds}`);
    throw connection.explain(error);
  } finally {
    signal.removeEventListener('abort', forward);
    end.abort();
  }
}

/** Undefined for a blank line. */
function readEvent<T extends KubernetesObject>(kind: Kind<T>, line: string): WatchEvent<T> | undefined {
  if (line.trim() === '') return undefined;
  const { type, object } = parseEvent(kind, line);
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED':
      return { type, object: readListedObject(kind, object) };
    case 'BOOKMARK': {
      const version = (object as { metadata?: { resourceVersion?: unknown } } | undefined)?.metadata?.resourceVersion;
      if (typeof version !== 'string') throw unreadable(kind, 'a bookmark without a version');
      return { type, resourceVersion: version };
    }
    case 'ERROR':
      throw statusError((object ?? {}) as Record<string, unknown>, 500);
    default:
      throw unreadable(kind, 'an event of unknown type');
  }
}

function parseEvent(kind: Kind, line: string): { readonly type?: unknown; readonly object?: unknown } {
  try {
    const event: unknown = JSON.parse(line);
    if (typeof event === 'object' && event !== null) return event;
  } catch {
    // Probably truncated; the error below reports it.
  }
  throw unreadable(kind, `a line of ${line.length} characters that is no JSON object`);
}

function unreadable(kind: Kind, what: string): SluiceError {
  return new SluiceError('Unavailable', `the server sent, on the watch of ${kind.plural}, ${what}`);
}
