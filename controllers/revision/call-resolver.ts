import { messageOf, SluiceError } from '../../src/foundation/sluice-error.ts';
import { ellipsize } from '../../src/foundation/text/shorten.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import { checkPath } from '../../src/git/objects/paths.ts';
import { bindInputs, type PackageInputs } from '../../src/package/model/content/inputs.ts';
import { matchesPattern } from '../../src/package/model/policy/policy.ts';
import { oneLine } from '../../src/package/model/record/record.ts';
import type { Resolution, ResolverContext } from '../../src/package/plan/ports/resolver.ts';

const MAX_MESSAGE_CHARACTERS = 300;

/** The context of one resolver, the same object in all rounds of a run, and the means to abort it. */
export interface Call {
  readonly context: ResolverContext;
  readonly end: AbortController;
}

export function newCall(context: ResolverContext): Call {
  const end = new AbortController();
  return { context: { ...context, signal: AbortSignal.any([context.signal, end.signal]) }, end };
}

/** Waits at most `timeout` milliseconds for the result, or until the run is aborted, even if the resolver ignores its signal. */
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
  const cancel = clock.schedule(timeout, () => end.abort(new SluiceError('Timeout', `no result within ${timeout} ms`)));
  try {
    signal.throwIfAborted();
    return await Promise.race([answer(context), aborted.promise]);
  } finally {
    cancel();
    signal.removeEventListener('abort', onAbort);
  }
}

/** Throws Refused, with the resolver's name, if a result contains what the resolver may not change. */
export function checkResolution(
  name: string,
  claims: readonly string[],
  resolution: Resolution,
  inputs: PackageInputs,
): void {
  const refuse = (what: string) => new SluiceError('Refused', `resolver ${name} ${what}`);
  for (const path of resolution.edits?.keys() ?? []) {
    if (path === 'Kptfile') throw refuse('edited the Kptfile; a resolver may change only conditions and gates there');
    try {
      checkPath(path);
    } catch (error) {
      throw refuse(`edited a file that a package cannot have: ${messageOf(error)}`);
    }
  }
  for (const type of [...(resolution.conditions ?? []).map((given) => given.type), ...(resolution.withdraw ?? [])]) {
    if (!claims.some((pattern) => matchesPattern(pattern, type)))
      throw refuse(`returned condition ${type}, which it does not claim`);
  }
  for (const { inputs: references } of resolution.conditions ?? []) bindInputs(references ?? [], inputs);
  const { requeueAfter } = resolution;
  if (requeueAfter !== undefined && !(requeueAfter >= 0))
    throw refuse(`returned an invalid requeueAfter of ${requeueAfter} milliseconds`);
}

/** An error as one short line for a condition, which every user may read: without the stack and without passwords in addresses. */
export function publicMessage(error: unknown): string {
  const line = oneLine(messageOf(error).replace(/^\s+at .*$/gm, ''))
    .replace(/\/\/[^/\s@]*@/g, '//***@')
    .replace(/\b(bearer|basic)\s+\S+/gi, '$1 ***')
    .replace(/\b(token|password|passwd|secret|api-?key)(["']?\s*[:=]\s*)\S+/gi, '$1$2***');
  return ellipsize(line, MAX_MESSAGE_CHARACTERS);
}
