import { isSluiceError, messageOf } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import { unlessRepeated } from '../../foundation/time/unless-repeated.ts';

/** Each informer has its own failure at the same moment. */
const COLLECT_MS = 1000;
/**
 * Reports failed reads of objects of the cluster: kinds that it does not serve together, with the next step, and any other message once
 * while it repeats.
 */
export function objectWarnings(clock: Clock, warn: (message: string) => void): (error: unknown) => void {
  const isNews = unlessRepeated(clock);
  const missing = new Set<string>();
  const flush = () => {
    const kinds = [...missing].sort().join(', ');
    missing.clear();
    warn(
      `the cluster does not serve ${kinds}: install the definitions (kubectl apply -k deploy/crds); Sluice retries until then`,
    );
  };
  return (error) => {
    const kind = missingKind(error);
    const text = kind ?? messageOf(error);
    if (!isNews(text)) return;
    if (kind === undefined) warn(text);
    else {
      if (missing.size === 0) clock.schedule(COLLECT_MS, flush);
      missing.add(kind);
    }
  };
}

/** The kind that the server does not serve; see `HttpClient`. */
function missingKind(error: unknown): string | undefined {
  if (!isSluiceError(error, 'Unsupported')) return undefined;
  const { kind } = (error.details ?? {}) as { readonly kind?: unknown };
  return typeof kind === 'string' ? kind : undefined;
}
