import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, inject, test } from 'vitest';
import { git } from '../support/git/git-cli.ts';
import { skipFor } from '../support/skip.ts';
import { Gitea } from './support/gitea.ts';
import { ReviewedRepository } from './support/reviewed-repository.ts';

const missing = inject('giteaMissing');
const gitea = new Gitea({ url: inject('giteaUrl'), folder: inject('giteaFolder') });
/** Sluice polls every ten seconds. */
const WAIT = { timeout: 90_000, interval: 250 };
/** In which Sluice polls twice. */
const TWO_POLLS_MS = 20_000;
const ANNA = 'reopen-anna';

describe('a pull request of one proposal', { ...skipFor(missing !== '' && missing), timeout: 300_000 }, () => {
  test('that was closed proposes its package again when it is opened again: without its branch, and with it', async () => {
    await using at = await ReviewedRepository.open(gitea, 'reopen', [ANNA], { publishOn: 'review' });
    const [name = ''] = await at.propose('api');
    const lifecycle = async () => (await at.revisions([name]))[0]?.lifecycle;
    const proposed = () => git(at.gitDir, ['for-each-ref', '--format=%(objectname)', 'refs/heads/proposed']).trim();
    const state = async () => (await at.pulls()).map((pull) => [pull.number, pull.state, pull.head.ref]);
    await expect.poll(state, WAIT).toEqual([[1, 'open', 'proposed/api/w1']]);
    await expect.poll(async () => (await at.pulls())[0]?.body, WAIT).toContain('Closing this pull request');
    // With the condition that is written to its branch when the reviews were read.
    await expect.poll(async () => Object.keys(await at.statuses(proposed())), WAIT).toContain('sluice/ready');
    let closed = 0;
    const close = async () => {
      await at.api('PATCH', '/pulls/1', { state: 'closed' }, ANNA);
      await expect.poll(lifecycle, WAIT).toBe('Draft');
      await expect.poll(proposed, WAIT).toBe('');
      await expect.poll(async () => (await at.pulls())[0]?.body, WAIT).toContain('and open it again');
      closed += 1;
      await at.finishRemoval('proposed/api/w1', closed);
    };

    await close();
    await at.api('PATCH', '/pulls/1', { state: 'open' }, ANNA);
    await expect.poll(lifecycle, WAIT).toBe('Proposed');
    await expect.poll(state, WAIT).toEqual([[1, 'open', 'proposed/api/w1']]);
    await expect.poll(async () => (await at.pulls())[0]?.body, WAIT).toContain('Closing this pull request');
    const { steps = [] } = (await at.revisions([name]))[0]?.record ?? {};
    expect(steps.at(-1)).toMatchObject({
      action: 'propose',
      by: 'berta',
      reason: expect.stringContaining('opened again'),
    });

    // As the page of the host requires it.
    const head = proposed();
    await close();
    await at.api('POST', '/branches', { new_branch_name: 'proposed/api/w1', old_ref_name: head }, ANNA);
    await at.api('PATCH', '/pulls/1', { state: 'open' }, ANNA);
    await expect.poll(lifecycle, WAIT).toBe('Proposed');
    await expect.poll(state, WAIT).toEqual([[1, 'open', 'proposed/api/w1']]);
    await expect.poll(async () => (await at.pulls())[0]?.body, WAIT).toContain('Closing this pull request');

    await at.approve(ANNA, 1);
    await expect.poll(lifecycle, WAIT).toBe('Published');
    await at.comment(ANNA, 1, '/sluice why');
    await expect
      .poll(async () => JSON.stringify(await at.api('GET', '/issues/1/comments')), WAIT)
      .toContain(`${name} is Published already`);
  });

  test('whose branch was deleted and restored stays proposed, whatever was said at an earlier end', async () => {
    await using at = await ReviewedRepository.open(gitea, 'restore', [ANNA], { publishOn: 'review' });
    const [name = ''] = await at.propose('api');
    const revision = async () => (await at.revisions([name]))[0];
    const lifecycle = async () => (await revision())?.lifecycle;
    const proposed = () => git(at.gitDir, ['for-each-ref', '--format=%(objectname)', 'refs/heads/proposed']).trim();
    const state = async () => (await at.pulls())[0]?.state;
    const body = async () => (await at.pulls())[0]?.body;
    await expect.poll(state, WAIT).toBe('open');
    await expect.poll(async () => Object.keys(await at.statuses(proposed())), WAIT).toContain('sluice/ready');
    await at.comment(ANNA, 1, 'later');
    await at.api('PATCH', '/pulls/1', { state: 'closed' }, ANNA);
    await expect.poll(lifecycle, WAIT).toBe('Draft');
    await expect.poll(async () => (await revision())?.record?.steps.at(-1)?.reason, WAIT).toMatch(/: later$/);
    await expect.poll(body, WAIT).toContain('and open it again');
    await at.finishRemoval('proposed/api/w1');
    await at.api('PATCH', '/pulls/1', { state: 'open' }, ANNA);
    await expect.poll(lifecycle, WAIT).toBe('Proposed');
    await expect.poll(body, WAIT).toContain('Closing this pull request');

    const head = proposed();
    await at.api('DELETE', '/branches/proposed%2Fapi%2Fw1', undefined, ANNA);
    await expect.poll(body, WAIT).toContain('is deleted now.');
    await expect.poll(state, WAIT).toBe('closed');
    await at.api('POST', '/branches', { new_branch_name: 'proposed/api/w1', old_ref_name: head }, ANNA);
    await expect.poll(lifecycle, WAIT).toBe('Proposed');
    await gitea.finishQueued();
    await delay(TWO_POLLS_MS);
    // Of the end by the removal neither the user who closed it earlier nor that comment is a reason.
    expect(await revision()).toMatchObject({ lifecycle: 'Proposed' });
    expect((await revision())?.record?.steps.at(-1)?.action).toBe('propose');
  });
});
