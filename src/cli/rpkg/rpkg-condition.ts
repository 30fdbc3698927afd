import { SluiceError } from '../../foundation/sluice-error.ts';
import { isComputedType, READY_TYPE } from '../../package/model/gates/ready-type.ts';
import type { IssuedCondition } from '../../package/model/gates/verdict.ts';
import type { Access } from '../access/access.ts';
import { conditionStatus } from '../access/condition-status.ts';
import { forEachName } from '../access/for-each-name.ts';
import { inPackages } from '../access/in-packages.ts';
import { withdrawCondition, writeCondition } from '../access/write-conditions.ts';
import type { ActorOptions, CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { setOnSelected } from './condition-selected.ts';

export interface ConditionOptions extends PlaceOptions, ActorOptions {
  readonly reason?: string;
  readonly message?: string;
  /** In place of a name. */
  readonly selector?: string;
  readonly repository?: string;
  readonly lifecycle?: string;
}

/** `sluice rpkg condition set`; the words are name, type and status, or type and status with a selector. */
export function rpkgConditionSet(
  words: readonly [string, string, string | undefined],
  options: ConditionOptions,
  invocation: Invocation,
): Promise<CommandResult> {
  const { selector } = options;
  if (selector === undefined) {
    const [name, type, word] = words;
    if (word === undefined)
      throw new SluiceError(
        'InvalidInput',
        'expected a name, a condition type and a status; or -l, a type and a status',
      );
    return setOnNames([name], type, word, options, invocation);
  }
  const [type, word, extra] = words;
  if (extra !== undefined)
    throw new SluiceError('InvalidInput', 'give either the name of a revision or a selector (-l), not both');
  if (selector.trim() === '')
    throw new SluiceError(
      'InvalidInput',
      'the selector of -l is empty, which would match every revision; name a label',
    );
  const condition = conditionFor(type, word, options, '<revision>');
  return inPackages(options, invocation, (access) =>
    setOnSelected(access, { ...options, selector }, condition, invocation),
  );
}

function setOnNames(
  names: readonly string[],
  type: string,
  word: string,
  options: ConditionOptions,
  invocation: Invocation,
): Promise<CommandResult> {
  const condition = conditionFor(type, word, options, names[0] ?? '');
  const set = (access: Access) => async (name: string) => {
    await writeCondition(access, name, condition);
    return `condition ${printable(type)} is ${condition.status}`;
  };
  return inPackages(options, invocation, (access) => forEachName(names, invocation, access, set(access), options));
}

function conditionFor(
  type: string,
  word: string,
  { reason, message }: ConditionOptions,
  revision: string,
): IssuedCondition {
  const status = conditionStatus(word);
  if (isComputedType(type))
    throw new SluiceError(
      'InvalidInput',
      `${type} cannot be set: Sluice computes it from the ${type === READY_TYPE ? 'gates' : 'rules for approvals'}; "sluice why ${printable(revision)}" names those that ${type === READY_TYPE ? 'are closed' : 'block'}`,
    );
  return {
    type,
    status,
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
  };
}

/** `sluice rpkg condition rm` */
export function rpkgConditionRemove(
  revision: string,
  type: string,
  options: PlaceOptions & ActorOptions,
  invocation: Invocation,
): Promise<CommandResult> {
  return inPackages(options, invocation, (access) =>
    forEachName(
      [revision],
      invocation,
      access,
      async (name) => {
        await withdrawCondition(access, name, type);
        return `condition ${printable(type)} removed`;
      },
      options,
    ),
  );
}
