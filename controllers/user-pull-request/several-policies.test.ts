import { beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { eachUserPulls, GATE, GATES, KPTFILE, MAP, type UserPullBench } from '../../test/support/user-pull-bench.ts';
import { MemoryForge } from '../pull-request/testing-forge.ts';

const TEAMS = [{ team: 'acme/sre', groups: ['sre'] }];
const OTHER_SECRET = { provider: 'gitea', api: 'https://git.example.com/api/v1', secretRef: { name: 'other' } };
const BOB = { user: 'bob', subject: 'bob@example.com' };

describe('pull requests of users to a repository with several policies', () => {
  const open = eachUserPulls();
  let at: UserPullBench;
  beforeEach(() => {
    at = open();
  });
  async function settle(): Promise<void> {
    for (let turn = 0; turn < 3; turn += 1) await at.poll();
  }
  const say = (text: string) => at.forge.comment(1, 'bob', text);

  test.each([
    ['one of them with teams', { approvers: [], teams: TEAMS }],
    ['one of them with other credentials', { forge: OTHER_SECRET }],
  ])('get one check and one comment about the packages of all: %s', async (_, review) => {
    await at.policy({}, { packages: ['web'] });
    await at.policy({ gateChecks: [GATE], ...review }, { name: 'other', packages: ['db'] });
    const commit = await at.pull({ 'web/Kptfile': KPTFILE(GATES), 'db/Kptfile': KPTFILE(), 'db/map.yaml': MAP });
    const only = await at.pull({ 'web/Kptfile': KPTFILE(GATES) }, { branch: 'only' });
    await settle();
    expect(at.titles(commit)).toEqual({
      'sluice/ready': `pending: 1 gate closed: ${GATE} of web`,
      [`sluice/gate/${GATE}`]: 'pending: web: the condition has not been set yet',
    });
    expect(at.comment(1)).toContain('#### `web`');
    expect(at.comment(1)).toContain('#### `db`');
    expect(at.titles(only)['sluice/ready']).toBe(`pending: 1 gate closed: ${GATE} of web`);
    at.forge.calls.length = 0;
    await at.poll();
    expect(at.forge.calls).toEqual(['listUpdated']);
  });

  test('fail where two of them select a package, since neither applies', async () => {
    await at.policy({}, { packages: ['web'] });
    await at.policy({}, { name: 'other', packages: ['db', 'web'] });
    const commit = await at.pull({ 'web/Kptfile': KPTFILE(GATES), 'db/Kptfile': KPTFILE() });
    await settle();
    expect(at.titles(commit)['sluice/ready']).toMatch(
      /^failure: The package web is not checked: the policies other, review all have spec\.review for it/,
    );
    expect(at.comment(1)).toContain('The package web is not checked');
  });

  test('are checked by the oldest one on whose host the repository is', async () => {
    await at.policy({ forge: OTHER_SECRET }, { packages: ['web'] });
    at.clock.advance(1000);
    await at.policy({}, { name: 'later', packages: ['db'] });
    at.restart({
      openForge: ({ policy }) => {
        if (policy === 'review') throw new SluiceError('InvalidInput', 'the repository is not on that host');
        return at.forge;
      },
    });
    const commit = await at.pull({ 'web/Kptfile': KPTFILE(), 'db/Kptfile': KPTFILE() });
    await settle();
    expect(at.titles(commit)['sluice/ready']).toMatch(/^success: 2 packages checked/);
  });

  test('are adopted only if the policy of each package permits it', async () => {
    await at.policy({}, { packages: ['web'] });
    await at.policy({ approvers: [{ user: 'carl', subject: 'carl' }] }, { name: 'other', packages: ['db'] });
    await at.pull({ 'web/Kptfile': KPTFILE(), 'db/Kptfile': KPTFILE() });
    say('/sluice adopt');
    await settle();
    expect(at.comment(1, 'adopt')).toContain('the policy other, which selects 1 package (db), does not list bob');
    expect(await at.refs()).toEqual([]);
  });

  test('are adopted in the name that the policy of each package gives, with its teams', async () => {
    const other = new MemoryForge();
    other.teams.set('acme/sre', new Set(['bob']));
    const created: string[] = [];
    at.restart({
      openForge: ({ forge }) => (forge.secretRef.name === 'other' ? other : at.forge),
      mayCreate: async ({ name, groups = [] }) => {
        created.push([name, ...groups].join(' '));
        return true;
      },
    });
    await at.policy({}, { packages: ['web'] });
    at.clock.advance(1000);
    const approvers = [{ user: 'bob', subject: 'robert' }];
    await at.policy({ forge: OTHER_SECRET, teams: TEAMS, approvers }, { name: 'other', packages: ['db'] });
    await at.pull({ 'web/Kptfile': KPTFILE(), 'db/Kptfile': KPTFILE() });
    say('/sluice adopt');
    await settle();
    expect(created.sort()).toEqual(['bob@example.com', 'robert sre']);
    expect(await at.refs()).toEqual(['refs/heads/drafts/db/pr-1', 'refs/heads/drafts/web/pr-1']);
  });

  test('of which one adopts by itself adopt its packages alone, and the others on request', async () => {
    await at.policy({ userPullRequests: 'adopt', approvers: [] }, { packages: ['web'] });
    await at.policy({ approvers: [BOB] }, { name: 'other', packages: ['db'] });
    await at.pull({ 'web/Kptfile': KPTFILE(), 'db/Kptfile': KPTFILE() });
    await settle();
    expect(await at.refs()).toEqual(['refs/heads/drafts/web/pr-1']);
    say('/sluice adopt');
    await settle();
    expect(await at.refs()).toEqual(['refs/heads/drafts/db/pr-1', 'refs/heads/drafts/web/pr-1']);
  });
});
