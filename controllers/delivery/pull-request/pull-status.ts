import type { PullRequest } from '../../../src/forge/forge.ts';
import type { DeliveryTarget } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';

/** What a target reports of its pull request. */
export type PullStatus = NonNullable<NonNullable<DeliveryTarget['status']>['pullRequest']>;

const STATES = { open: 'Open', closed: 'Closed', merged: 'Merged' } as const;

export function statusOf({ number, url, state, head }: PullRequest): PullStatus {
  return { number, url, state: STATES[state], ...(head.commit === '' ? {} : { commit: head.commit }) };
}

/** What changes with each change of users. */
export function stateOf(pull: PullRequest | undefined): unknown {
  return pull && [pull.number, pull.state, pull.updatedAt, pull.head.commit];
}
