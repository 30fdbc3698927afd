import type { Clock } from '../../src/foundation/clock.ts';
import { messageOf, SluiceError } from '../../src/foundation/sluice-error.ts';
import { checkPath } from '../../src/git/objects/paths.ts';
import { bindInputs, type PackageInputs } from '../../src/package/model/inputs.ts';
import { matchesPattern } from '../../src/package/model/policy.ts';
import { oneLine } from '../../src/package/model/record.ts';
import type { Resolution, ResolverContext } from '../../src/package/plan/resolver.ts';

const LONGEST_MESSAGE = 300;

/** What one resolver is called with, the same object in all rounds of a run, and the means to make it stop. */
export interface Call {
  readonly context: ResolverContext;
  readonly end: AbortController;
}

export function newCall(context: ResolverContext): Call {
  const end = new AbortController();
  return { context: { ...context, signal: AbortSignal.any([context.signal, end.signal]) }, end };
}

/** Waits for an answer no longer than `timeout` milliseconds or until the run is given up, whether the resolver heeds its signal or not. */
export async function withTimeout(
  answer: (context: ResolverContext) => Resolution | Promise<Resolution>,
  { context, end }: Call,
  clock: Clock,
  timeout: number,
): Promise<Resolution> {
  const { signal } = context;
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  const cancel = clock.schedule(timeout, () => end.abort(new SluiceError('Timeout', `no answer within ${timeout} ms`)));
  try {
    signal.throwIfAborted();
    return await Promise.race([answer(context), aborted.promise]);
  } finally {
    cancel();
    signal.removeEventListener('abort', onAbort);
  }
}

/** Throws Refused, with the resolver's name, if an answer reaches for what is not the resolver's. */
export function checkResolution(
  name: string,
  claims: readonly string[],
  resolution: Resolution,
  inputs: PackageInputs,
): void {
  const refuse = (what: string) => new SluiceError('Refused', `resolver ${name} ${what}`);
  for (const path of resolution.edits?.keys() ?? []) {
    if (path === 'Kptfile')
      throw refuse('edited the Kptfile; conditions and gates are what a resolver may change there');
    try {
      checkPath(path);
    } catch (error) {
      throw refuse(`edited a file that a package cannot have: ${messageOf(error)}`);
    }
  }
  for (const type of [...(resolution.conditions ?? []).map((given) => given.type), ...(resolution.withdraw ?? [])]) {
    if (!claims.some((pattern) => matchesPattern(pattern, type)))
      throw refuse(`answered for condition ${type}, which it does not claim`);
  }
  for (const { inputs: references } of resolution.conditions ?? []) bindInputs(references ?? [], inputs);
  const { requeueAfter } = resolution;
  if (requeueAfter !== undefined && !(requeueAfter >= 0))
    throw refuse(`asked to be called again after ${requeueAfter} milliseconds`);
}

/** An error as one short line for a condition, which everybody may read: without stack, addresses' passwords and the like. */
export function publicMessage(error: unknown): string {
  const line = oneLine(messageOf(error).replace(/^\s+at .*$/gm, ''))
    .replace(/\/\/[^/\s@]*@/g, '//***@')
    .replace(/\b(bearer|basic)\s+\S+/gi, '$1 ***')
    .replace(/\b(token|password|passwd|secret|api-?key)(["']?\s*[:=]\s*)\S+/gi, '$1$2***');
  return line.length <= LONGEST_MESSAGE ? line : `${line.slice(0, LONGEST_MESSAGE - 1)}…`;
}
