import { isSluiceError } from '../foundation/sluice-error.ts';

/** Of a host that reports the number of entries of all pages. */
export interface CountedPage<Entry> {
  readonly entries: readonly Entry[];
  readonly total: number | undefined;
}

/**
 * The entries of all pages, in order; some come twice. A page that is too long is read again entry by entry, without those that are too long by
 * themselves: the text of one must not hide the others. `readPage` returns the page with this number where pages have `size` entries, or
 * as many as the host returns at most. `end` says behind which page there is none, unless the host reports how many
 * entries there are.
 */
export async function* readPages<Entry>(
  { size, end }: { readonly size: number; readonly end: 'empty page' | 'short page' },
  readPage: (page: number, size: number) => Promise<readonly Entry[] | CountedPage<Entry>>,
): AsyncGenerator<Entry> {
  /** So many entries at least are on the pages before. */
  let covered = 0;
  let read = 0;
  for (let page = 1; ; page += 1) {
    const whole = await unlessTooLong(readPage(page, size));
    if (whole === undefined) {
      for (; covered < page * size; covered += 1) {
        const single = await unlessTooLong(readPage(covered + 1, 1));
        const { entries } = counted(single ?? []);
        if (single !== undefined && entries.length === 0) return;
        read += 1;
        yield* entries;
      }
    } else {
      const { entries, total } = counted(whole);
      read += entries.length;
      if (entries.length === 0) return;
      yield* entries;
      if (total !== undefined && read >= total) return;
      if (end === 'short page' && entries.length < size) return;
      covered = Math.max(covered, page * entries.length);
    }
  }
}

function counted<Entry>(page: readonly Entry[] | CountedPage<Entry>): CountedPage<Entry> {
  return isCounted(page) ? page : { entries: page, total: undefined };
}

function isCounted<Entry>(page: readonly Entry[] | CountedPage<Entry>): page is CountedPage<Entry> {
  return !Array.isArray(page);
}

async function unlessTooLong<Entries>(read: Promise<Entries>): Promise<Entries | undefined> {
  try {
    return await read;
  } catch (error) {
    if (isSluiceError(error, 'LimitExceeded')) return undefined;
    throw error;
  }
}
