import { isSluiceError } from '../foundation/sluice-error.ts';

/**
 * The entries of all pages, in order; some come twice. A page that is too long is read again entry by entry, without those that are too long by
 * themselves: the text of one must not hide the others. `readPage` returns the page with this number where pages have `size` entries, or
 * as many as the host returns at most. `end` says behind which page there is none.
 */
export async function* readPages<Entry>(
  { size, end }: { readonly size: number; readonly end: 'empty page' | 'short page' },
  readPage: (page: number, size: number) => Promise<readonly Entry[]>,
): AsyncGenerator<Entry> {
  /** So many entries at least are on the pages before. */
  let covered = 0;
  for (let page = 1; ; page += 1) {
    const entries = await unlessTooLong(readPage(page, size));
    if (entries === undefined) {
      for (; covered < page * size; covered += 1) {
        const single = await unlessTooLong(readPage(covered + 1, 1));
        if (single?.length === 0) return;
        yield* single ?? [];
      }
    } else {
      if (entries.length === 0) return;
      yield* entries;
      if (end === 'short page' && entries.length < size) return;
      covered = Math.max(covered, page * entries.length);
    }
  }
}

async function unlessTooLong<Entries>(read: Promise<Entries>): Promise<Entries | undefined> {
  try {
    return await read;
  } catch (error) {
    if (isSluiceError(error, 'LimitExceeded')) return undefined;
    throw error;
  }
}
