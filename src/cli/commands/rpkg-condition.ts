import { printable } from '../output/printable.ts';
import type { ActorOptions, DataOptions, Invocation, Outcome } from '../program/invocation.ts';
import { conditionStatus } from './condition-status.ts';
import { forEachName } from './for-each-name.ts';
import { findRevision, inSession } from './in-session.ts';

export interface ConditionOptions extends DataOptions, ActorOptions {
  readonly reason?: string;
  readonly message?: string;
}

/** `sluice rpkg condition set` */
export function setCondition(
  revision: string,
  type: string,
  word: string,
  options: ConditionOptions,
  invocation: Invocation,
): Promise<Outcome> {
  const { reason, message } = options;
  const status = conditionStatus(word);
  const condition = {
    type,
    status,
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
  };
  return inSession(options, invocation, (session) =>
    forEachName([revision], invocation, async (name) => {
      const { commit } = await findRevision(session, name);
      await session.store.change(name, { conditions: [condition], expectedCommit: commit }, session.context());
      return `condition ${printable(type)} is ${status}`;
    }),
  );
}

/** `sluice rpkg condition rm` */
export function removeCondition(
  revision: string,
  type: string,
  options: DataOptions & ActorOptions,
  invocation: Invocation,
): Promise<Outcome> {
  return inSession(options, invocation, (session) =>
    forEachName([revision], invocation, async (name) => {
      const { commit } = await findRevision(session, name);
      await session.store.change(name, { withdraw: [type], expectedCommit: commit }, session.context());
      return `condition ${printable(type)} removed`;
    }),
  );
}
