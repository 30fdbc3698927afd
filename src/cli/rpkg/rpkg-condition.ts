import { SluiceError } from '../../foundation/sluice-error.ts';
import { READY_TYPE } from '../../package/model/gates/ready-type.ts';
import { conditionStatus } from '../access/condition-status.ts';
import { forEachName } from '../access/for-each-name.ts';
import { inAccess } from '../access/in-access.ts';
import { withdrawCondition, writeCondition } from '../access/write-conditions.ts';
import type { ActorOptions, CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';

export interface ConditionOptions extends PlaceOptions, ActorOptions {
  readonly reason?: string;
  readonly message?: string;
}

/** `sluice rpkg condition set` */
export function rpkgConditionSet(
  revision: string,
  type: string,
  word: string,
  options: ConditionOptions,
  invocation: Invocation,
): Promise<CommandResult> {
  const { reason, message } = options;
  const status = conditionStatus(word);
  if (type === READY_TYPE)
    throw new SluiceError(
      'InvalidInput',
      `${READY_TYPE} cannot be set: Sluice computes it from the gates; "sluice why ${printable(revision)}" names those that are closed`,
    );
  const condition = {
    type,
    status,
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
  };
  return inAccess(options, invocation, (access) =>
    forEachName(
      [revision],
      invocation,
      access,
      async (name) => {
        await writeCondition(access, name, condition);
        return `condition ${printable(type)} is ${status}`;
      },
      options,
    ),
  );
}

/** `sluice rpkg condition rm` */
export function rpkgConditionRemove(
  revision: string,
  type: string,
  options: PlaceOptions & ActorOptions,
  invocation: Invocation,
): Promise<CommandResult> {
  return inAccess(options, invocation, (access) =>
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
