import { printTable } from '../table.ts';
import type { ApiRequest } from './bench-host.ts';

/** The kind of a request, by its path below the repository and its query. */
export function kindOf(method: string, path: string, query: string): string {
  const plain = path
    .replaceAll(/\/[0-9a-f]{40}/g, '/COMMIT')
    .replaceAll(/\/\d+/g, '/N')
    .replace(/\/labels\/.+$/, '/labels/NAME');
  const page = new URLSearchParams(query).get('page');
  return `${method} ${plain === '' ? '/' : plain}${page === null || page === '1' ? '' : ' (further pages)'}`;
}

/** Prints which requests there were, per proposal. */
export function printRequests(requests: readonly ApiRequest[], proposals: number): void {
  const counts = new Map<string, { all: number; free: number }>();
  for (const { kind, isFree } of requests) {
    const count = counts.get(kind) ?? { all: 0, free: 0 };
    counts.set(kind, { all: count.all + 1, free: count.free + (isFree ? 1 : 0) });
  }
  const sorted = [...counts].sort(([, one], [, other]) => other.all - one.all);
  printTable(
    ['request', 'per proposal', 'in all', 'of which unchanged'],
    sorted.map(([kind, { all, free }]) => [kind, (all / proposals).toFixed(2), String(all), String(free)]),
  );
}
