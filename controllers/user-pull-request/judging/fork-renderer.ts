import { createHash } from 'node:crypto';
import type { LruCache } from '../../../src/foundation/lru-cache.ts';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { canonicalJson } from '../../../src/foundation/text/canonical-json.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import type { Renderer, Rendering, RenderRequest } from '../../../src/package/plan/ports/renderer.ts';

/** Milliseconds for rendering all packages of one head that no user of the repository has pushed. */
export const FORK_RENDER_MS = 10_000;
/** A head that took longer is not rendered again for so long. */
const PAUSE_MS = 600_000;
/** What functions do can change, by their configurations. */
const MAX_AGE_MS = 600_000;

/** Renderings of packages from forks with the time at which they began, in milliseconds of running time, by all that decides them. */
export type ForkRenderings = LruCache<string, { readonly rendering: Rendering | undefined; readonly atMs: number }>;

/** The head of a pull request that took too long to render. */
export interface Exhausted {
  readonly head: string;
  readonly atMs: number;
}

/**
 * A renderer for the packages of one head whose author may not push to the repository: it rejects with LimitExceeded after `FORK_RENDER_MS` in
 * total, and keeps that in `memory`, and renders no package twice, so that pull requests of strangers cost a bounded time.
 */
export function forkRenderer(renderer: Renderer, { clock, head, memory, renderings }: ForkOptions): Renderer {
  let leftMs = FORK_RENDER_MS;
  return {
    async render(request) {
      const key = keyOf(request);
      const known = renderings.get(key);
      if (known !== undefined && clock.monotonic() - known.atMs < MAX_AGE_MS) return known.rendering;
      const { exhausted } = memory;
      if (exhausted?.head === head && clock.monotonic() - exhausted.atMs < PAUSE_MS) throw tooLong();
      const atMs = clock.monotonic();
      const budget = new AbortController();
      const cancel = clock.schedule(leftMs, () => budget.abort(tooLong()));
      try {
        const signal = AbortSignal.any([request.signal, budget.signal]);
        const rendering = await renderer.render({ ...request, signal });
        renderings.set(key, { rendering, atMs }, sizeOf(rendering));
        return rendering;
      } finally {
        cancel();
        leftMs = Math.max(0, leftMs - (clock.monotonic() - atMs));
        if (leftMs === 0 || budget.signal.aborted) memory.exhausted = { head, atMs: clock.monotonic() };
      }
    },
  };
}

export interface ForkOptions {
  readonly clock: Clock;
  readonly head: string;
  readonly memory: { exhausted?: Exhausted };
  readonly renderings: ForkRenderings;
}

function tooLong(): SluiceError {
  const message = `rendering takes more than the ${FORK_RENDER_MS / 1000} s that a pull request from outside the repository has; simplify the pipeline, change fewer packages, or have a user with write access push the branch`;
  return new SluiceError('LimitExceeded', message);
}

function keyOf({ files, namespace, validatorConditions, pinnedValidators }: RenderRequest): string {
  const hash = createHash('sha256');
  hash.update(canonicalJson([namespace, [...validatorConditions], pinnedValidators ?? []]));
  for (const [path, data] of [...files].sort(([a], [b]) => (a < b ? -1 : 1)))
    hash.update(`\0${path}\0${data.length}\0`).update(data);
  return hash.digest('hex');
}

/** About the bytes that it holds. */
function sizeOf(rendering: Rendering | undefined): number {
  let bytes = 4096;
  for (const [, data] of rendering?.edits ?? []) bytes += data?.length ?? 0;
  return bytes;
}
