import { expect, test } from 'vitest';
import type { Comment } from '../../../src/forge/forge.ts';
import { ManualClock } from '../../../src/foundation/time/manual-clock.ts';
import { ANNA } from '../../../test/support/fixture.ts';
import { eachUserPulls, KPTFILE } from '../../../test/support/user-pull-bench.ts';
import { SyncRequests } from '../../repository/sync-requests.ts';
import { shownBy } from './apply-adoption.ts';

const open = eachUserPulls();

test('a request is carried out once: a draft that was deleted stays deleted in a new process, also if a later request is removed', async () => {
  const at = open();
  const draft = () => at.world.store.find('apps.web.pr-1');
  const polls = async () => {
    for (let turn = 0; turn < 3; turn += 1) await at.poll();
  };
  await at.policy();
  await at.pull({ 'web/Kptfile': KPTFILE() });
  at.forge.comment(1, 'bob', '/sluice adopt');
  await polls();
  await at.world.settle('apps.web.pr-1');
  await at.world.store.update('apps.web.pr-1', { action: 'delete' }, ANNA);
  const refused = at.forge.comment(1, 'eve', '/sluice adopt');
  await polls();
  expect(at.comment(1, 'adopt')).toContain('does not list eve');
  at.restart();
  await polls();
  expect(draft()).toBeUndefined();
  at.forge.commentsOf.set(1, at.forge.commentsOf.get(1)?.filter(({ id }) => id !== refused) ?? []);
  at.forge.change(1, {});
  await polls();
  expect(draft()).toBeUndefined();
  at.forge.comment(1, 'bob', '/sluice adopt');
  await polls();
  expect(draft()?.lifecycle).toBe('Draft');
});

test('a request that was written more than an hour ago is none, whatever changed since', async () => {
  const at = open();
  await at.policy();
  await at.pull({ 'web/Kptfile': KPTFILE() });
  at.forge.comment(1, 'bob', '/sluice adopt');
  at.clock.setBy(Date.parse(at.forge.pulls[0]?.updatedAt ?? '') + 3_600_000 - at.clock.now());
  at.forge.skip(1800);
  at.forge.change(1, {});
  await at.poll();
  expect(await at.refs()).toEqual([]);
  expect(at.comment(1, 'adopt')).toBeUndefined();
});

test('that a request is as it was written counts from the namespace that reads it alone, an edit from each', () => {
  const requests = new SyncRequests(new ManualClock());
  const [own, other] = [
    { namespace: 'shop', name: 'own' },
    { namespace: 'other', name: 'other' },
  ];
  const comment = { id: '1', author: 'bob', body: '/sluice adopt' } as Comment;
  const shown = () => shownBy(requests, own, [{ key: own }, { key: other }])(comment);
  expect(shown()).toBeUndefined();
  requests.addWritten(other, comment);
  expect(shown()).toBeUndefined();
  requests.addWritten(own, comment);
  expect(shown()).toBe(true);
  requests.addWritten(other, { ...comment, body: 'please review' });
  expect(shown()).toBe(false);
});
