import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { printTable } from '../table.ts';

const REQUEST = /"(?<method>[A-Z]+) \/api\/v1(?:\/repos\/[^/ ]+\/[^/ ?]+)?(?<path>[^ ?]*)(?<query>[^ ]*) HTTP/;
/** Without a request, Sluice has nothing to do any more. */
const QUIET_MS = 3000;

/** The requests of Sluice to the API of a Gitea, by the host's own log, which grows. */
export class ApiRequests {
  readonly #file: string;

  /** `folder` is that of the Gitea. */
  constructor(folder: string) {
    this.#file = join(folder, 'log', 'access.log');
  }

  /** All until now: each as its method and path without what identifies an object, such as `GET /pulls/N/reviews`. */
  async read(): Promise<readonly string[]> {
    const log = await readFile(this.#file, 'utf8');
    const own = log.split('\n').filter((line) => line.includes(' /api/v1/') && line.includes('"sluice"'));
    return own.map(kindOf);
  }

  async count(): Promise<number> {
    return (await this.read()).length;
  }

  /** Waits until Sluice has requested nothing for three seconds. */
  async settle(): Promise<void> {
    for (let last = -1; ; ) {
      const now = await this.count();
      if (now === last) return;
      last = now;
      await delay(QUIET_MS);
    }
  }
}

/** Prints which requests there were, per proposal. */
export function printRequests(requests: readonly string[], proposals: number): void {
  const counts = new Map<string, number>();
  for (const kind of requests) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const sorted = [...counts].sort(([, one], [, other]) => other - one);
  printTable(
    ['request', 'per proposal', 'in all'],
    sorted.map(([kind, count]) => [kind, (count / proposals).toFixed(2), String(count)]),
  );
}

function kindOf(line: string): string {
  const { method = '', path = '', query = '' } = REQUEST.exec(line)?.groups ?? {};
  const plain = path.replaceAll(/\/[0-9a-f]{40}/g, '/COMMIT').replaceAll(/\/\d+/g, '/N');
  const page = /[?&]page=(\d+)/.exec(query)?.[1];
  return `${method} ${plain}${page === undefined || page === '1' ? '' : ' (further pages)'}`;
}
