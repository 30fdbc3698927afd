import { describe, expect, inject, test } from 'vitest';
import { skipFor } from '../support/skip.ts';
import { Gitea } from './support/gitea.ts';
import { ReviewedRepository } from './support/reviewed-repository.ts';

const missing = inject('giteaMissing');
const gitea = new Gitea({ url: inject('giteaUrl'), folder: inject('giteaFolder') });
/** Sluice polls every ten seconds. */
const WAIT = { timeout: 90_000, interval: 250 };
const ANNA = 'teams-anna';

describe('groups of teams', { ...skipFor(missing !== '' && missing), timeout: 300_000 }, () => {
  test('a team that Sluice may not read is a reason while an approval needs it; once Sluice is in it, its member approves', async () => {
    await gitea.api('POST', '/orgs', { username: 'teams-org' });
    const team = { name: 'sre', permission: 'read', units: ['repo.code'] };
    const { id } = (await gitea.api('POST', '/orgs/teams-org/teams', team)) as { id: number };
    const teams = [{ team: 'teams-org/sre', groups: ['sre'] }];
    const approval = { quorum: { required: 1, from: ['group:sre'] } };
    await using at = await ReviewedRepository.open(
      gitea,
      'teams',
      [ANNA],
      { publishOn: 'review', teams },
      { approval },
    );
    await gitea.api('PUT', `/teams/${id}/members/${ANNA}`);
    const [name = ''] = await at.propose('app');
    await expect.poll(() => at.pulls(), WAIT).toMatchObject([{ state: 'open' }]);
    const number = (await at.pulls())[0]?.number ?? 0;
    await at.approve(ANNA, number);
    await expect
      .poll(() => at.reasons(name), WAIT)
      .toContainEqual({
        reason: 'TeamNotRead',
        message: expect.stringMatching(
          /^the groups of teams-anna may be missing; the members of team teams-org\/sre cannot be read: /,
        ),
      });
    const [review] = (await at.api('GET', `/pulls/${number}/reviews`)) as { id: number }[];
    await at.api('POST', `/pulls/${number}/reviews/${review?.id}/dismissals`, { message: 'outdated' });
    const codes = async () => (await at.reasons(name)).map(({ reason }) => reason);
    await expect.poll(codes, WAIT).not.toContain('TeamNotRead');
    expect((await at.revisions([name]))[0]?.lifecycle).toBe('Proposed');

    await gitea.api('PUT', `/teams/${id}/members/teams-sluice`);
    await at.approve(ANNA, number);
    await expect.poll(async () => (await at.revisions([name]))[0]?.lifecycle, WAIT).toBe('Published');
    expect((await at.revisions([name]))[0]).toMatchObject({ revision: 1, outOfBand: undefined });
  });
});
