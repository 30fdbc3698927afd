import { measurement } from '../../foundation/measurement.ts';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import type { Action } from '../model/types.ts';

/** What the kernel said to a lifecycle step that somebody asked for. */
export interface JudgedTransition {
  readonly action: Action;
  readonly result: 'allowed' | 'refused';
}

/** Every lifecycle step that was carried out or refused. */
export const transitions = measurement<JudgedTransition>('sluice:transition');

/** Runs a write and tells what became of its lifecycle step, if it has one. Failures besides a refusal are no judgement. */
export async function judged<Result>(
  action: Action | undefined,
  context: RequestContext,
  work: () => Promise<Result>,
): Promise<Result> {
  if (action === undefined || context.dryRun === true) return work();
  try {
    const result = await work();
    transitions.tell({ action, result: 'allowed' });
    return result;
  } catch (error) {
    if (isSluiceError(error, 'Refused')) transitions.tell({ action, result: 'refused' });
    throw error;
  }
}
