import { expect, test } from 'vitest';
import { eachProposals } from '../../../test/support/proposal-bench.ts';
import type { Authorizer } from '../../server/authorization/authorizer.ts';
import { userMayCreate, userRights } from './user-rights.ts';

const open = eachProposals();

test('that the API is not served yet, after a restart, is no failure of an open proposal', async () => {
  const at = open();
  await at.policy({ publishOn: 'merge' });
  const name = await at.propose();
  await at.reconcile(name);
  let authorizer: Authorizer | undefined;
  const rights = (part: 'approval' | 'status') => userRights(() => authorizer, part);
  at.restart({ mayApprove: rights('approval'), maySetConditions: rights('status') });
  const wait = 'the API is not served yet, so that the rights of users are not known';
  await expect(at.reconcile(name)).rejects.toMatchObject({ code: 'Busy', message: wait });
  expect((await at.world.events(name)).filter((event) => event.startsWith('PullRequestFailed'))).toEqual([]);
  expect(at.world.store.repository('apps').refusals.of(name)).toEqual([]);
  authorizer = { authorize: async () => ({ allowed: true }) } as unknown as Authorizer;
  await at.reconcile(name);
  expect(at.forge.pulls).toHaveLength(1);
  await expect(
    userMayCreate(() => undefined)({ name: 'anna' }, 'default', new AbortController().signal),
  ).rejects.toThrow(wait);
});
