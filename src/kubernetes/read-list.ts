import { isSluiceError, SluiceError } from '../foundation/sluice-error.ts';
import type { KubernetesObject, Stored } from '../resource/object/object.ts';
import type { Kind } from '../resource/schema/kind.ts';
import type { ListResult } from '../resource/storage/storage.ts';
import { readObject } from './read-object.ts';
import type { Query } from './selection-query.ts';

const PAGE = '500';
/** More pages mean that the server is faulty. */
const MAX_PAGES = 20_000;

/**
 * Reads a list page by page; `read` gets the parameters of a page and returns the parsed response. If the server drops the
 * list between two pages, it is read again once, in one page, which cannot expire half-way.
 */
export async function readList<T extends KubernetesObject>(
  kind: Kind<T>,
  read: (query: Query) => Promise<unknown>,
): Promise<ListResult<T>> {
  try {
    return await readPages(kind, (token) => read({ limit: PAGE, continue: token }));
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
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { items: values, metadata } = (await read(token)) as Partial<Record<string, unknown>>;
    // Go programs serialize an empty list as null.
    if (!Array.isArray(values ?? [])) throw new SluiceError('Unavailable', `the server sent no list of ${kind.plural}`);
    for (const value of (values ?? []) as unknown[]) items.push(readObject(kind, value));
    const { resourceVersion, continue: next } = (metadata ?? {}) as Partial<Record<string, unknown>>;
    version ??= typeof resourceVersion === 'string' ? resourceVersion : '';
    if (typeof next !== 'string' || next === '')
      return Object.freeze({ items: Object.freeze(items.sort(byKey)), resourceVersion: version });
    token = next;
  }
  throw new SluiceError('LimitExceeded', `the list of ${kind.plural} has more than ${MAX_PAGES} pages`);
}

function byKey({ metadata: left }: KubernetesObject, { metadata: right }: KubernetesObject): number {
  return compare(left.namespace ?? '', right.namespace ?? '') || compare(left.name, right.name);
}

function compare(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}
