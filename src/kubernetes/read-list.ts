import { inSlices } from '../foundation/concurrency/in-slices.ts';
import { isSluiceError, SluiceError } from '../foundation/sluice-error.ts';
import type { KubernetesObject, Stored } from '../resource/object/object.ts';
import type { Kind } from '../resource/schema/kind.ts';
import type { ListResult } from '../resource/storage/storage.ts';
import { readListedObject } from './read-object.ts';
import type { Query } from './selection-query.ts';

/** Items of a page that are requested at most. */
export const MAX_PAGE_ITEMS = 500;
/**
 * By which a page with too many bytes gets smaller: 500, 62, 7 items, then one, which may have as many bytes as any response. Halving would
 * read up to nine pages in vain, each of many megabytes; a larger divisor would read small pages where slightly smaller ones suffice.
 */
const PAGE_DIVISOR = 8;
/** More objects would not fit into memory, or mean that the server is faulty. */
const MAX_ITEMS = 1_000_000;
/** Of large objects a page has few. */
const MAX_PAGES = 100_000;

/** Of a server that need not be trusted: what it may make Sluice keep, and for how long it may occupy it. */
export interface ListLimits {
  readonly items: number;
  readonly pages: number;
  /** Of what the kind keeps of the objects, as JSON. */
  readonly bytes: number;
}

const LIMITS: ListLimits = { items: MAX_ITEMS, pages: MAX_PAGES, bytes: Number.POSITIVE_INFINITY };

/** Requests a page; LimitExceeded if the response has more bytes than a page may have or, unless `isPage`, any response. */
type ReadPage = (query: Query, isPage: boolean) => Promise<unknown>;

/**
 * Reads a list page by page; `read` gets the parameters of a page and returns the parsed response. Pages get smaller where objects are large.
 * If the server drops the list between two pages, it is read again once, in one page, which cannot expire half-way; in pages again if it is
 * too large for that.
 */
export async function readList<T extends KubernetesObject>(
  kind: Kind<T>,
  read: ReadPage,
  limits: ListLimits = LIMITS,
): Promise<ListResult<T>> {
  try {
    return await readPages(kind, read, MAX_PAGE_ITEMS, limits);
  } catch (error) {
    if (!isSluiceError(error, 'Expired')) throw error;
  }
  try {
    return await readPages(kind, read, undefined, limits);
  } catch (error) {
    if (!isSluiceError(error, 'LimitExceeded')) throw error;
    return await readPages(kind, read, MAX_PAGE_ITEMS, limits);
  }
}

/** Reads pages with at most so many items; undefined for all in one page. */
async function readPages<T extends KubernetesObject>(
  kind: Kind<T>,
  read: ReadPage,
  firstLimit: number | undefined,
  limits: ListLimits,
): Promise<ListResult<T>> {
  let limit = firstLimit;
  const items: Stored<T>[] = [];
  let version: string | undefined;
  let token: string | undefined;
  let bytes = 0;
  for (let number = 0; number < limits.pages && items.length <= limits.items && bytes <= limits.bytes; number += 1) {
    let response: unknown;
    try {
      response = await read({ limit: limit?.toString(), continue: token }, limit !== 1);
    } catch (error) {
      if (!isSluiceError(error, 'LimitExceeded') || limit === undefined || limit === 1) throw error;
      limit = Math.max(1, Math.floor(limit / PAGE_DIVISOR));
      continue;
    }
    const page = await readPage(kind, response);
    for (const item of page.items) {
      items.push(item);
      if (limits.bytes !== Number.POSITIVE_INFINITY) bytes += JSON.stringify(item).length;
    }
    version ??= page.resourceVersion;
    token = page.continue;
    if (token === undefined)
      return Object.freeze({ items: Object.freeze(items.sort(byKey)), resourceVersion: version });
  }
  throw new SluiceError(
    'LimitExceeded',
    `the list of ${kind.plural} has more than ${limits.items} objects or ${limits.pages} pages${bytes > limits.bytes ? `, or ${limits.bytes} bytes` : ''}; select fewer of them`,
  );
}

/** Reads the response to the request of one page. It yields between objects, since one with a megabyte of short fields takes a while. */
export async function readPage<T extends KubernetesObject>(kind: Kind<T>, response: unknown): Promise<ListResult<T>> {
  const { items: values, metadata } = response as Partial<Record<string, unknown>>;
  // Go programs serialize an empty list as null.
  if (!Array.isArray(values ?? [])) throw new SluiceError('Unavailable', `the server sent no list of ${kind.plural}`);
  const items: Stored<T>[] = [];
  await inSlices((values ?? []) as unknown[], (value) => items.push(readListedObject(kind, value)));
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
