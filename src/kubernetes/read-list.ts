import { isSluiceError, SluiceError } from '../foundation/sluice-error.ts';
import type { KubernetesObject, Stored } from '../resource/object/object.ts';
import type { Kind } from '../resource/schema/kind.ts';
import type { ListResult } from '../resource/storage/storage.ts';
import { readObject } from './read-object.ts';
import type { Query } from './selection-query.ts';

/** Items of a page that are requested at most. */
export const MAX_PAGE_ITEMS = 500;
/** A million objects: more would not fit into memory, or mean that the server is faulty. */
const MAX_PAGES = 2000;

/**
 * Reads a list page by page; `read` gets the parameters of a page and returns the parsed response. If the server drops the
 * list between two pages, it is read again once, in one page, which cannot expire half-way.
 */
export async function readList<T extends KubernetesObject>(
  kind: Kind<T>,
  read: (query: Query) => Promise<unknown>,
): Promise<ListResult<T>> {
  try {
    return await readPages(kind, (token) => read({ limit: String(MAX_PAGE_ITEMS), continue: token }));
  } catch (error) {
    if (!isSluiceError(error, 'Expired')) throw error;
    return await readPages(kind, (token) => read({ continue: token }));
  }
}

async function readPages<T extends KubernetesObject>(
  kind: Kind<T>,
  read: (token: string | undefined) => Promise<unknown>,
): Promise<ListResult<T>> {
  const items: Stored<T>[] = [];
  let version: string | undefined;
  let token: string | undefined;
  for (let number = 0; number < MAX_PAGES; number += 1) {
    const page = readPage(kind, await read(token));
    for (const item of page.items) items.push(item);
    version ??= page.resourceVersion;
    token = page.continue;
    if (token === undefined)
      return Object.freeze({ items: Object.freeze(items.sort(byKey)), resourceVersion: version });
  }
  throw new SluiceError('LimitExceeded', `the list of ${kind.plural} has more than ${MAX_PAGES} pages`);
}

/** Reads the response to the request of one page. */
export function readPage<T extends KubernetesObject>(kind: Kind<T>, response: unknown): ListResult<T> {
  const { items: values, metadata } = response as Partial<Record<string, unknown>>;
  // Go programs serialize an empty list as null.
  if (!Array.isArray(values ?? [])) throw new SluiceError('Unavailable', `the server sent no list of ${kind.plural}`);
  const items = ((values ?? []) as unknown[]).map((value) => readObject(kind, value));
  const { resourceVersion, continue: next, remainingItemCount } = (metadata ?? {}) as Partial<Record<string, unknown>>;
  return Object.freeze({
    items: Object.freeze(items),
    resourceVersion: typeof resourceVersion === 'string' ? resourceVersion : '',
    ...(typeof next === 'string' && next !== '' ? { continue: next } : {}),
    ...(typeof remainingItemCount === 'number' ? { remainingItemCount } : {}),
  });
}

function byKey({ metadata: left }: KubernetesObject, { metadata: right }: KubernetesObject): number {
  return compare(left.namespace ?? '', right.namespace ?? '') || compare(left.name, right.name);
}

function compare(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}
