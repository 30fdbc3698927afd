import { createHash } from 'node:crypto';
import { SluiceError } from '../../foundation/sluice-error.ts';

/** Milliseconds for which a package that took too long is not rendered again. */
const KEPT_MS = 300_000;
const MAX_KEPT = 1000;

/** Packages whose program took too long: each target and each evaluation would run it for the whole time again. */
export class KnownTimeouts {
  /** The oldest first. */
  readonly #kept = new Map<string, { readonly message: string; readonly until: number }>();

  add(digest: string, message: string, now: number): void {
    this.#kept.delete(digest);
    this.#kept.set(digest, { message, until: now + KEPT_MS });
    for (const [oldest, { until }] of this.#kept) {
      if (until > now && this.#kept.size <= MAX_KEPT) break;
      this.#kept.delete(oldest);
    }
  }

  /** Throws the Timeout that is known. */
  check(digest: string, now: number): void {
    const known = this.#kept.get(digest);
    if (known === undefined || known.until <= now) return;
    throw new SluiceError('Timeout', `${known.message}; it is tried again ${KEPT_MS / 60_000} minutes after that`);
  }
}

/** Identifies everything that the output of a program depends on. */
export function digestOf(render: string, path: string, files: ReadonlyMap<string, Uint8Array>): string {
  const hash = createHash('sha256').update(JSON.stringify([render, path]));
  for (const [name, data] of [...files].sort(([a], [b]) => (a < b ? -1 : 1)))
    hash.update(JSON.stringify([name, data.length])).update(data);
  return hash.digest('hex');
}
