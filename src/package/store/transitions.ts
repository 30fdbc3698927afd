import { measurement } from '../../foundation/time/measurement.ts';
import type { Action } from '../model/revision/revision-state.ts';

/** The kernel's decision on a lifecycle step that a client requested. */
export interface DecidedTransition {
  readonly action: Action;
  readonly result: 'allowed' | 'refused';
}

/** Every lifecycle step that was committed or refused, dry runs excepted. */
export const transitions = measurement<DecidedTransition>('sluice:transition');
