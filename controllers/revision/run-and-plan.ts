import type { RevisionEvaluation } from '../../src/package/store/evaluate-revision.ts';
import type { Arrangement } from './arrange-resolvers.ts';
import { mustSplit, type Plan, planRoundWrite } from './plan-change.ts';
import { type RunOptions, type RunOutcome, runResolvers } from './run-resolvers.ts';

export interface PlannedRun {
  readonly outcome: RunOutcome;
  readonly plan: Plan;
}

/**
 * Runs the resolvers and plans the resulting change. Policies may permit each resolver only its own conditions, and no actor
 * all of them; then the first resolver with a result is run alone, as the actor of its own change.
 */
export async function runAndPlan(
  evaluation: RevisionEvaluation,
  arrangement: Arrangement,
  options: RunOptions,
): Promise<PlannedRun> {
  const attempt = async (only?: string): Promise<PlannedRun> => {
    const outcome = await runResolvers(evaluation, arrangement, only === undefined ? options : { ...options, only });
    return { outcome, plan: planRoundWrite(evaluation, outcome, options.context.now) };
  };
  const all = await attempt();
  if (!mustSplit(evaluation.policy, all.outcome, all.plan)) return all;
  for (const { name } of arrangement.order) {
    if (!all.plan.contributors.includes(name)) continue;
    const one = await attempt(name);
    if (one.plan.change !== undefined && one.plan.refused.length === 0) return one;
  }
  return all;
}
