import { z } from 'zod';

const UNITS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

const FORM = /^(?:\d+(?:\.\d+)?(?:ns|us|µs|μs|ms|s|m|h))+$/;
const FORM_OR_ZERO = /^(?:0|(?:\d+(?:\.\d+)?(?:ns|us|µs|μs|ms|s|m|h))+)$/;
const MAX_CHARACTERS = 64;
const RULE = 'must be a duration such as "30s", "5m" or "1h30m"';

/** The longest duration that is taken: 100 years. Longer ones are mistakes and do not fit into timers and dates. */
const MAX_DURATION_MS = 100 * 365 * 24 * 3_600_000;

/** Milliseconds of a duration in Go's form, such as `1h30m` or `500ms`; undefined if it is none, negative or too long. */
export function parseDuration(text: string): number | undefined {
  if (text === '0') return 0;
  if (text.length > MAX_CHARACTERS || !FORM.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/([\d.]+)([a-zµμ]+)/g))
    total += Number(amount) * (UNITS[unit ?? ''] ?? 0);
  return total <= MAX_DURATION_MS ? total : undefined;
}

/** The schema of a duration in Go's form. The text stays as it was written. */
export const durationSchema = z
  .string()
  .max(MAX_CHARACTERS, { error: RULE, abort: true })
  .regex(FORM_OR_ZERO, { error: RULE, abort: true })
  .refine((text) => parseDuration(text) !== undefined, RULE);
