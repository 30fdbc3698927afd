import { expect, test } from 'vitest';
import { ManualClock } from '../../../src/foundation/time/manual-clock.ts';
import { ANNA } from '../../../test/support/fixture.ts';
import { eachProposals, GATE } from '../../../test/support/proposal-bench.ts';
import { AskedRights } from './asked-rights.ts';

const GATED = { requiredGates: [{ conditionType: GATE, approveOnly: true }] };
const open = eachProposals();

test('the check succeeds once the users whom the policy maps get the right to approve', async () => {
  const at = open();
  await at.policy({ publishOn: 'merge' }, { approval: { quorum: { required: 1 } } });
  at.serveBranches();
  let grantedAt = Number.POSITIVE_INFINITY;
  at.restart({ mayApprove: async () => at.clock.now() >= grantedAt });
  const name = await at.propose();
  await at.settle(60_000);
  const ready = () => at.forge.checks.get(at.revision(name).commit)?.get('sluice/ready');
  expect(ready()?.state).toBe('pending');
  // A RoleBinding that is created in a minute. Two hours follow, with all polls and wake-ups that the controller asks for.
  grantedAt = at.clock.now() + 60_000;
  await at.settle(7_200_000);

  expect(ready()?.state).toBe('success');
});

test('an approving review counts once its user gets the right that the event asks for', async () => {
  const at = open();
  await at.policy({});
  at.serveBranches();
  let grantedAt = Number.POSITIVE_INFINITY;
  at.restart({ mayApprove: async () => at.clock.now() >= grantedAt });
  const name = await at.propose();
  await at.settle(60_000);
  at.forge.review(1, 'bob', 'approved', at.revision(name).commit);
  await at.settle(60_000);
  expect((await at.world.events(name)).join()).toMatch(/ReviewNotCounted: .*grant that right/);
  grantedAt = at.clock.now() + 60_000;
  await at.settle(7_200_000);
  expect(at.revision(name).lifecycle).toBe('Published');
});

test('the check waits again once the only mapped user has lost the right', async () => {
  const at = open();
  await at.policy({ publishOn: 'merge' }, { approval: { quorum: { required: 1 } } });
  at.serveBranches();
  let lostAt = Number.POSITIVE_INFINITY;
  at.restart({ mayApprove: async () => at.clock.now() < lostAt });
  const name = await at.propose();
  await at.settle(60_000);
  const ready = () => at.forge.checks.get(at.revision(name).commit)?.get('sluice/ready');
  expect(ready()?.state).toBe('success');
  lostAt = at.clock.now() + 60_000;
  await at.settle(7_200_000);
  expect(ready()?.state).toBe('pending');
});

test('a review counts once its user has joined the team that gives the right', async () => {
  const at = open();
  await at.policy({ teams: [{ team: 'acme/sre', groups: ['sre'] }] });
  at.serveBranches();
  at.restart({ mayApprove: async ({ groups = [] }) => groups.includes('sre') });
  const name = await at.propose();
  await at.settle(60_000);
  at.forge.review(1, 'bob', 'approved', at.revision(name).commit);
  await at.settle(60_000);
  expect(at.revision(name).lifecycle).toBe('Proposed');
  at.forge.teams.set('acme/sre', new Set(['bob']));
  await at.settle(900_000);
  expect(at.revision(name).lifecycle).toBe('Published');
});

test('while nothing changes the Git host gets no request for rights', async () => {
  const at = open();
  await at.policy({ publishOn: 'merge' }, { approval: { quorum: { required: 1 } } });
  at.serveBranches();
  let asked = 0;
  at.restart({
    mayApprove: async () => {
      asked += 1;
      return false;
    },
  });
  await at.proposeAll('app', 'web');
  await at.settle(600_000);
  asked = 0;
  at.forge.calls.length = 0;
  await at.settle(3_600_000);
  expect([...new Set(at.forge.calls)]).toEqual(['listUpdated']);
  // Of two users, each for one of the proposals at most every five minutes, and once at the beginning for each of both.
  expect(asked).toBeGreaterThan(0);
  expect(asked).toBeLessThanOrEqual(28);
});

test('of many users and teams some are asked for in each look, and all after some looks; a change of roles hastens it', async () => {
  const clock = new ManualClock();
  const enqueued: string[] = [];
  const rights = new AskedRights(
    clock,
    ({ name }) => void enqueued.push(name),
    () => 0,
  );
  const repository = { namespace: 'default', name: 'apps' };
  const { signal } = new AbortController();
  const members: string[] = [];
  const users = Array.from({ length: 150 }, (_, at) => `user${at}`);
  const asked = new Set<string>();
  const asking = rights.about(repository, { namespace: 'default', name: 'apps.web.v1' });
  const may = asking.rights(async ({ name }) => {
    asked.add(name);
    return false;
  });
  const teams = asking.teams({
    isTeamMember: async (_, user) => {
      members.push(user);
      return user === 'new' && clock.monotonic() > 0;
    },
  });
  for (const name of users) await may?.({ name }, { namespace: 'default', name: 'apps.web.v1' }, signal);
  for (const user of ['old', 'older', 'new']) await teams.isTeamMember('acme/sre', user, signal);
  asking.keep();
  expect(enqueued).toEqual(['apps:rights']);
  const woken: string[] = [];
  const look = () => rights.look({ ...repository, name: 'apps:rights' }, ({ name }) => void woken.push(name), signal);
  asked.clear();
  members.length = 0;
  expect(await look()).toMatchObject({ requeueAfter: 300_000 });
  expect(asked.size).toBe(0);
  clock.advance(300_000);
  await look();
  expect([asked.size, members]).toEqual([100, ['old', 'older']]);
  expect(woken).toEqual([]);
  rights.hurry();
  expect(enqueued).toHaveLength(2);
  expect(await look()).toMatchObject({ requeueAfter: 1000 });
  clock.advance(1000);
  await look();
  expect([asked.size, members.length]).toEqual([150, 2]);
  expect(woken).toEqual([]);
  clock.advance(299_000);
  await look();
  expect(members.at(2)).toBe('new');
  expect(woken).toEqual(['apps.web.v1']);
  rights.forget(repository, { namespace: 'default', name: 'apps.web.v1' });
  expect(await look()).toBeUndefined();
});

test('changes of roles cause no requests to the Git host', async () => {
  const clock = new ManualClock();
  const rights = new AskedRights(
    clock,
    () => undefined,
    () => 0,
  );
  const { signal } = new AbortController();
  const repository = { namespace: 'default', name: 'apps' };
  const asked = { right: 0, team: 0 };
  const count = (kind: keyof typeof asked) => async () => {
    asked[kind] += 1;
    return true;
  };
  for (let number = 0; number < 10; number += 1) {
    const asking = rights.about(repository, { namespace: 'default', name: `apps.app${number}.w1` });
    await asking.teams({ isTeamMember: count('team') }).isTeamMember('acme/sre', `user${number}`, signal);
    await asking.rights(count('right'))?.({ name: `user${number}` }, { namespace: 'default', name: 'app' }, signal);
    asking.keep();
  }
  Object.assign(asked, { right: 0, team: 0 });
  // A change every two seconds, for ten minutes.
  for (let turn = 0; turn < 300; turn += 1) {
    rights.hurry();
    clock.advance(2000);
    await rights.look({ ...repository, name: 'apps:rights' }, () => undefined, signal);
  }
  expect(asked).toEqual({ right: 3000, team: 4 });
});

test('a right to any of several packages of a pull request is noticed, since roles can name objects', async () => {
  const clock = new ManualClock();
  const rights = new AskedRights(
    clock,
    () => undefined,
    () => 0,
  );
  const { signal } = new AbortController();
  const repository = { namespace: 'default', name: 'apps' };
  const granted = new Set(['apps.b.v1']);
  const asking = rights.about(repository, { namespace: 'default', name: 'apps.1' });
  const may = asking.rights(async (_, { name }) => granted.has(name));
  for (const name of ['apps.a.v1', 'apps.b.v1']) await may?.({ name: 'bob' }, { namespace: 'default', name }, signal);
  asking.keep();
  granted.add('apps.a.v1');
  const woken = new Set<string>();
  for (let turn = 0; turn < 2; turn += 1) {
    clock.advance(300_000);
    await rights.look({ ...repository, name: 'apps:rights' }, ({ name }) => void woken.add(name), signal);
  }
  expect([...woken]).toEqual(['apps.1']);
});

test('known answers are those of one revision, until a look or a change of roles shows that they are others', async () => {
  const clock = new ManualClock();
  const enqueued: string[] = [];
  const rights = new AskedRights(
    clock,
    ({ name }) => void enqueued.push(name),
    () => 0,
  );
  const { signal } = new AbortController();
  const repository = { namespace: 'default', name: 'apps' };
  const item = { namespace: 'default', name: 'apps.1' };
  const granted = new Set(['apps.a.v1']);
  let asked: string[] = [];
  const mayApprove = async (_: unknown, { name }: { readonly name: string }) => {
    asked.push(name);
    return granted.has(name);
  };
  const reconcile = async (fresh: readonly string[] = []) => {
    asked = [];
    const asking = rights.about(repository, item);
    const ask = (name: string, may: ReturnType<typeof asking.rights>) =>
      may?.({ name: 'bob' }, { namespace: 'default', name }, signal);
    const answers: (boolean | undefined)[] = [];
    for (const name of ['apps.a.v1', 'apps.b.v1']) answers.push(await ask(name, asking.knownRights(mayApprove)));
    for (const name of fresh) await ask(name, asking.rights(mayApprove));
    asking.keep();
    return { answers, asked };
  };
  const look = () => rights.look({ ...repository, name: 'apps:rights' }, () => undefined, signal);
  clock.advance(1);
  expect(await reconcile()).toEqual({ answers: [true, false], asked: ['apps.a.v1', 'apps.b.v1'] });
  expect(await reconcile()).toEqual({ answers: [true, false], asked: [] });
  // A refusal holds up a check.
  clock.advance(30_000);
  expect(await reconcile()).toEqual({ answers: [true, false], asked: ['apps.b.v1'] });

  // What decides is asked, and what is shown follows that.
  granted.add('apps.b.v1');
  enqueued.length = 0;
  expect(await reconcile(['apps.b.v1'])).toEqual({ answers: [true, false], asked: ['apps.b.v1'] });
  expect(enqueued).toEqual(['apps.1']);
  expect(await reconcile(['apps.b.v1'])).toEqual({ answers: [true, true], asked: ['apps.b.v1'] });
  expect(enqueued).toEqual(['apps.1']);

  granted.clear();
  rights.hurry();
  expect(await reconcile()).toEqual({ answers: [false, false], asked: ['apps.a.v1', 'apps.b.v1'] });
  // Until the change is read everywhere, no answer lasts.
  clock.advance(1000);
  granted.add('apps.a.v1').add('apps.b.v1');
  expect(await reconcile()).toEqual({ answers: [true, true], asked: ['apps.a.v1', 'apps.b.v1'] });
  clock.advance(1000);
  expect((await reconcile()).asked).toHaveLength(2);
  granted.delete('apps.a.v1');
  clock.advance(269_000);
  await look();
  expect(await reconcile()).toEqual({ answers: [false, true], asked: ['apps.a.v1', 'apps.b.v1'] });
});

test('a reconciliation of a proposal asks for the rights of no mapped users that are known', async () => {
  const at = open();
  let asked = 0;
  at.restart({
    mayApprove: async () => {
      asked += 1;
      return true;
    },
  });
  const approvers = Array.from({ length: 12 }, (_, number) => ({ user: `u${number}`, subject: `u${number}@acme.org` }));
  await at.policy({ publishOn: 'merge', approvers, gateChecks: [GATE] }, GATED);
  const name = await at.propose();
  await at.settle();
  expect(asked).toBeGreaterThan(0);
  asked = 0;
  await at.world.store.change(name, { conditions: [{ type: GATE, status: 'False' }] }, ANNA);
  await at.reconcile(name);
  expect(asked).toBe(0);
});
