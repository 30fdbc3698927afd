import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { untilStopped } from '../../../app/service/until-stopped.ts';
import { messageOf, SluiceError } from '../../../foundation/sluice-error.ts';
import type { PipelineEvent, PipelineInput, PipelineOutcome } from '../../../function/model/pipeline.ts';
import { fnResultList } from '../../../function/resource-list/fn-result-list.ts';
import { workerPipelineRunner } from '../../../function/worker/worker-pipeline-runner.ts';
import type { Invocation } from '../../output/invocation.ts';
import { printable } from '../../output/printable.ts';
import { toYaml } from '../../output/structured.ts';
import { externalRunner, type Permissions } from './external-runner.ts';
import { Progress } from './progress.ts';

/** Options for running functions. */
export interface RunningOptions {
  readonly output?: string;
  readonly resultsDir?: string;
  readonly imagePullPolicy: 'always' | 'ifNotPresent' | 'never';
  readonly truncateOutput: 'true' | 'false';
}

export interface RunRequest {
  readonly files: PipelineInput['files'];
  readonly only?: PipelineInput['only'];
  /** Name of the root package, if the progress lines name packages. */
  readonly root?: string;
  readonly permissions: Permissions;
  readonly options: RunningOptions;
}

const EXIT_INTERRUPTED = 130;

/**
 * Runs a pipeline, reports progress on stderr, and writes the findings to the folder of `--results-dir`. Returns an exit code in
 * place of an outcome if the user stopped it.
 */
export async function runFunctions(
  { files, only, root, permissions, options }: RunRequest,
  { terminal, environment }: Invocation,
): Promise<PipelineOutcome | number> {
  const external = externalRunner(permissions, options.imagePullPolicy, environment);
  const runner = workerPipelineRunner({ external, concurrency: 1 });
  const stop = untilStopped(() => terminal.note('stopping'));
  const progress = new Progress(terminal, {
    truncate: options.truncateOutput === 'true',
    now: () => performance.now(),
  });
  const input = { files, rules: [], validatorConditions: new Map(), ...(only === undefined ? {} : { only }) };
  let [inPackage, started, finished]: [string | undefined, number, number] = [undefined, 0, 0];
  const show = (event: PipelineEvent) => {
    const { type, step } = event;
    if (type === 'finished') {
      finished += 1;
      return progress.done(step);
    }
    started += 1;
    if (root !== undefined && step.packagePath !== inPackage)
      progress.package(step.packagePath === '' ? root : `${root}/${step.packagePath}`);
    inPackage = step.packagePath;
    progress.running(event);
  };
  try {
    const outcome = await runner.run(input, stop.signal, show);
    // No event reports the end of a function that did not finish or did not start.
    for (const step of outcome.steps.slice(finished)) {
      if (started <= finished) show({ type: 'started', step });
      show({ type: 'finished', step });
    }
    progress.end();
    for (const note of outcome.notes) terminal.note(`[WARN] ${printable(note)}`);
    if (options.resultsDir !== undefined) {
      const path = await writeResults(options.resultsDir, outcome);
      terminal.note(`For complete results, see ${printable(path)}`);
    }
    return outcome;
  } catch (error) {
    if (stop.signal.aborted) return EXIT_INTERRUPTED;
    throw error;
  } finally {
    stop.release();
    await runner.close();
  }
}

async function writeResults(folder: string, outcome: PipelineOutcome): Promise<string> {
  const path = join(folder, 'results.yaml');
  try {
    await mkdir(folder, { recursive: true });
    await writeFile(path, toYaml(fnResultList(outcome)));
  } catch (error) {
    throw new SluiceError('Unavailable', `cannot write ${printable(path)}: ${messageOf(error)}`, { cause: error });
  }
  return path;
}
