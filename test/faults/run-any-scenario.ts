import { prepare, runScenario, type ScenarioOptions } from './forge-scenario.ts';
import { prepareUserPulls, runUserMerges } from './user-merge-scenario.ts';

export function prepareScenario(options: ScenarioOptions): Promise<void> {
  return options.userPulls === true ? prepareUserPulls(options) : prepare(options);
}

/** Runs the scenario that the options select. Returns what became of it: `Published`, or what it has instead. */
export function runAnyScenario(options: ScenarioOptions): Promise<string> {
  return options.userPulls === true ? runUserMerges(options) : runScenario(options);
}
