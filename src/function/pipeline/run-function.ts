import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { ResolvedFunction } from '../catalog/catalog.ts';
import { parseImageName } from '../catalog/image-name.ts';
import type { ExternalCall, ExternalRunner } from '../external/external-runner.ts';
import type { ResourceList } from '../model/function.ts';
import type { FunctionResult } from '../model/function-result.ts';
import type { FunctionLimits } from '../model/pipeline.ts';
import type { Resource } from '../resource/resource.ts';
import { readResourceList, writeResourceList } from '../resource-list/resource-list-text.ts';

/** The result of one run of a function. */
export interface FunctionRun {
  /** Its output; undefined if it failed. */
  readonly items?: readonly Resource[];
  readonly results: readonly FunctionResult[];
  /** 0 on success. */
  readonly exitCode: number;
  /** Its human-readable output, or the reason of its failure. */
  readonly stderr?: string;
  /** Reason why it was ended. */
  readonly executionError?: string;
  /** True if it could not be run here. */
  readonly unavailable?: boolean;
}

export interface RunContext {
  readonly external: ExternalRunner | undefined;
  readonly limits: FunctionLimits;
  readonly signal: AbortSignal;
  /** As in FunctionContext. */
  readonly byHand?: boolean;
}

type Input = Pick<ResourceList, 'items' | 'config'>;

/** Runs a function. May change the resources that it is given. Rejects with the reason of the signal only. */
export async function runFunction(fn: ResolvedFunction, input: Input, context: RunContext): Promise<FunctionRun> {
  const run = await attempt(fn, input, context);
  context.signal.throwIfAborted();
  return run;
}

async function attempt(fn: ResolvedFunction, input: Input, context: RunContext): Promise<FunctionRun> {
  switch (fn.type) {
    case 'forbidden':
      return { results: [], exitCode: 1, stderr: `it is not allowed: ${fn.message}` };
    case 'builtIn':
      return runBuiltIn(fn, input, context);
    case 'exec':
      return runExternal({ exec: fn.path }, input, context);
    case 'container': {
      const { tag, digest } = parseImageName(fn.image);
      // A pattern is resolved by the tags of the registry, which change.
      if (digest === undefined && tag !== undefined && !/^\w[\w.-]{0,127}$/.test(tag))
        return unavailableRun(
          `the tag ${JSON.stringify(tag)} matches several versions of ${fn.image.slice(0, -tag.length - 1)}; name one of them`,
        );
      return runExternal({ image: fn.image }, input, context);
    }
  }
}

async function runBuiltIn(
  { fn, version }: Extract<ResolvedFunction, { type: 'builtIn' }>,
  { items, config }: Input,
  { limits, signal, byHand = false }: RunContext,
): Promise<FunctionRun> {
  const list: ResourceList = { items: [...items], config, results: [] };
  try {
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(limits.time)]);
    await fn.run(list, { signal: bounded, byHand, ...(version === undefined ? {} : { version }) });
  } catch (error) {
    const { results } = list;
    if (isSluiceError(error, 'InvalidInput') || isSluiceError(error, 'LimitExceeded'))
      return { results, exitCode: 1, stderr: error.message };
    return { results, exitCode: 1, executionError: `it crashed: ${messageOf(error)}` };
  }
  const { items: output, results, errorsPass = false, stderr = '' } = list;
  const run = errorsPass ? { items: output, results, exitCode: 0 } : checkedRun(output, results);
  return stderr === '' ? run : { ...run, stderr };
}

async function runExternal(
  call: Omit<ExternalCall, 'input'>,
  { items, config }: Input,
  context: RunContext,
): Promise<FunctionRun> {
  const { external, limits, signal } = context;
  if (external === undefined) return unavailableRun('it is not built in, and external functions are disabled');
  try {
    const refusal = await external.refusal(call);
    if (refusal !== undefined) return unavailableRun(refusal);
    const { exitCode, stdout, stderr } = await external.run(
      { ...call, input: writeResourceList({ items, config }) },
      signal,
    );
    const text = stderr === '' ? {} : { stderr };
    if (exitCode !== 0) return { results: resultsIn(stdout, limits), exitCode, ...text };
    const output = readResourceList(stdout, { sent: items, limits });
    return { ...checkedRun(output.items, output.results), ...text };
  } catch (error) {
    if (isSluiceError(error, 'InvalidInput')) return { results: [], exitCode: 1, stderr: error.message };
    const unavailable = isSluiceError(error, 'Unavailable') ? { unavailable: true } : {};
    return { results: [], exitCode: 1, executionError: messageOf(error), ...unavailable };
  }
}

function checkedRun(items: readonly Resource[], results: readonly FunctionResult[]): FunctionRun {
  const failed = results.some(({ severity }) => severity === 'error');
  return failed ? { results, exitCode: 1 } : { items, results, exitCode: 0 };
}

function unavailableRun(why: string): FunctionRun {
  return { results: [], exitCode: 1, executionError: why, unavailable: true };
}

/** The findings of a function that failed, which need not have printed any. */
function resultsIn(stdout: string, limits: FunctionLimits): FunctionResult[] {
  try {
    return readResourceList(stdout, { limits }).results;
  } catch (error) {
    if (error instanceof SluiceError) return [];
    throw error;
  }
}
