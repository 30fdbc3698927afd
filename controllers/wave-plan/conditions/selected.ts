import { counted, listed } from '../../../src/foundation/text/counted.ts';
import type { WavePlan } from '../../../src/resource/kinds/sluice/wave/wave-plan.ts';
import type { NewCondition } from '../../../src/resource/object/condition.ts';

/** Condition of a plan: whether its selector selects anything. */
export const SELECTED_CONDITION = 'Selected';
/** Its reason for an empty selector. */
export const EVERYTHING = 'EverythingSelected';

const MAX_NAMED = 3;

export interface SelectedFacts {
  /** Targets of the plan, without those that left it. */
  readonly targets: number;
  /** Proposed revisions of the namespace, whether or not they are selected. */
  readonly proposed: number;
  /** Those that are selected. */
  readonly selected: number;
  /** Ids of targets without an approval that are still proposed, and are not selected any more. */
  readonly lost: readonly string[];
  /** See `unknownNames`. */
  readonly unknown: readonly string[];
}

/** What the selector of a plan selects, as far as users may not have meant it: nothing, or everything. */
export function selectedCondition(
  { spec: { selector } }: Pick<WavePlan, 'spec'>,
  { targets, proposed, selected, lost, unknown }: SelectedFacts,
): NewCondition {
  const type = SELECTED_CONDITION;
  const also = unknown.map((text) => `; ${text}`).join('');
  if (targets === 0) {
    const what =
      proposed === 0
        ? 'no revision of its namespace is Proposed'
        : `its selector selects none of the ${counted(proposed, 'Proposed revision')} of its namespace`;
    const message = `${what}${also}; it starts once it selects one that is proposed: propose one, or correct spec.selector`;
    return { type, status: 'False', reason: 'NothingSelected', message };
  }
  // It may be meant that some are not selected any more, but hardly that all are, or by a name that does not exist.
  const isWrong = lost.length > 0 ? unknown.length > 0 || selected === 0 : unknown.length > 0 && selected === 0;
  if (isWrong) {
    const left =
      lost.length === 0
        ? []
        : [`${counted(lost.length, 'target')} (${listed(lost, MAX_NAMED)}), still proposed, would be back`];
    const message = [...unknown, ['correct spec.selector', ...left].join(': ')].join('; ');
    return { type, status: 'False', reason: 'NothingSelected', message };
  }
  const isEmpty = Object.values(selector).every((field) => field === undefined);
  const text = `it has ${counted(targets, 'target')}`;
  return isEmpty
    ? {
        ...{ type, status: 'True', reason: EVERYTHING },
        message: `${text}: spec.selector is empty, so that it selects every revision that is proposed in its namespace`,
      }
    : { type, status: 'True', reason: 'TargetsSelected', message: `${text}${also}` };
}
