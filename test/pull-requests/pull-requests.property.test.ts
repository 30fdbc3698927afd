import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { builtIns } from '../../src/function/built-in/index.ts';
import { Catalog } from '../../src/function/catalog/catalog.ts';
import { externalFunctions } from '../../src/function/external/external-functions.ts';
import { FunctionRenderer } from '../../src/function/renderer/function-renderer.ts';
import { workerPipelineRunner } from '../../src/function/worker/worker-pipeline-runner.ts';
import { runs } from '../support/runs.ts';
import { describe as describeSteps, settings, step } from './actions.ts';
import { runSequence } from './run-sequence.ts';

const { SLUICE_PULL_SEED, SLUICE_PULL_SEQUENCES, SLUICE_PULL_MINUTES } = process.env;
const FIRST_SEED = Number(SLUICE_PULL_SEED ?? 20_005);
const SEQUENCES = Number(SLUICE_PULL_SEQUENCES ?? (SLUICE_PULL_SEED === undefined ? runs(20, 1) : 1));
/** With the search for a shorter counterexample. */
const TIME_LIMIT_MS = Number(SLUICE_PULL_MINUTES ?? 3) * 60_000;

let runner: ReturnType<typeof workerPipelineRunner>;
let renderer: FunctionRenderer;
beforeAll(() => {
  const external = externalFunctions({ programs: 'not here', containers: 'not here' });
  runner = workerPipelineRunner({ external, concurrency: 1 });
  renderer = new FunctionRenderer({ runner, catalog: new Catalog(builtIns), rules: () => [] });
});
afterAll(() => runner.close());

test(
  'whatever users, the host and the process do, proposals and pull requests stay in order',
  async () => {
    const end = Date.now() + TIME_LIMIT_MS;
    const steps = fc.array(step, { minLength: 3, maxLength: 14, size: 'max' });
    const property = fc.asyncProperty(settings, steps, fc.nat({ max: 5 }), (...sequence) =>
      runSequence(renderer, ...sequence),
    );
    for (let seed = FIRST_SEED; seed < FIRST_SEED + SEQUENCES && Date.now() < end; seed += 1) {
      // One run for each seed, so that each can be repeated by itself.
      const result = await fc.check(property, {
        ...{ seed, numRuns: 1, unbiased: true },
        ...{ interruptAfterTimeLimit: Math.max(1000, end - Date.now()), markInterruptAsFailure: false },
      });
      if (!result.failed || result.counterexample === null) continue;
      const [config, taken, choice] = result.counterexample;
      const { errorInstance: error } = result;
      const cause = error instanceof Error ? error.stack : String(error);
      expect.fail(`SLUICE_PULL_SEED=${seed}\n${describeSteps(config, taken)}\nchoice: ${choice}\n${cause}`);
    }
  },
  2 * TIME_LIMIT_MS,
);
