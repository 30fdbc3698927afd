import { describe, expect, inject, test } from 'vitest';
import { git } from '../support/git/git-cli.ts';
import { skipFor } from '../support/skip.ts';
import { Gitea } from './support/gitea.ts';
import { type Pull, ReviewedRepository } from './support/reviewed-repository.ts';

const missing = inject('giteaMissing');
const gitea = new Gitea({ url: inject('giteaUrl'), folder: inject('giteaFolder') });
/** Sluice waits five seconds for further proposals, and polls every ten seconds. */
const WAIT = { timeout: 90_000, interval: 250 };
const PACKAGES = ['api', 'db', 'web'];
const [ANNA, BEN] = ['batch-anna', 'batch-ben'] as const;

/** Waits for the one pull request of three proposals, with a status. Returns it. */
async function opened(at: ReviewedRepository, names: readonly string[]): Promise<Pull> {
  let pull: Pull | undefined;
  await expect
    .poll(async () => {
      const pulls = await at.pulls();
      pull = pulls[0];
      return { count: pulls.length, statuses: pull === undefined ? {} : await at.statuses(pull.head.sha) };
    }, WAIT)
    .toEqual({ count: 1, statuses: { 'sluice/ready': expect.stringMatching(/success|pending/) } });
  if (pull === undefined) throw new Error('there is no pull request');
  expect(pull).toMatchObject({ state: 'open', head: { ref: expect.stringMatching(/^sluice\/batch\//) } });
  for (const name of names) expect(pull.body).toContain(`### \`${name}\``);
  const changed = git(at.gitDir, ['diff', '--name-only', 'main', pull.head.sha]).trim().split('\n');
  expect([...new Set(changed.map((file) => file.split('/')[0]))]).toEqual(PACKAGES);
  return pull;
}

const lifecycles = async (at: ReviewedRepository, names: readonly string[]) =>
  (await at.revisions(names)).map(({ lifecycle }) => lifecycle);
/** What the pull request says at its end about a package. */
const publishedBy = (name: string, user: string) => `\`${name}\`: Published, \`approve\` by \`${user}@example.com\``;
const branches = (at: ReviewedRepository) => git(at.gitDir, ['for-each-ref', '--format=%(refname)', 'refs/heads']);

describe('proposals that share a pull request', { ...skipFor(missing !== '' && missing), timeout: 300_000 }, () => {
  test('the button publishes each at the commit of the merge, once the host has the review and the check that it requires', async () => {
    const review = { publishOn: 'merge', batch: {} };
    await using at = await ReviewedRepository.open(gitea, 'batch-merge', [ANNA, BEN], review);
    const checks = { enable_status_check: true, status_check_contexts: ['sluice/ready'] };
    const rule = { rule_name: 'main', enable_push: false, required_approvals: 1, ...checks };
    await at.api('POST', '/branch_protections', rule);
    const names = await at.propose(...PACKAGES);
    const { number } = await opened(at, names);
    await expect
      .poll(async () => at.statuses((await at.pulls())[0]?.head.sha ?? ''), WAIT)
      .toEqual({ 'sluice/ready': 'success' });
    const merge = () => at.api('POST', `/pulls/${number}/merge`, { Do: 'merge' }, ANNA).then(() => 'merged', String);
    await expect.poll(merge, WAIT).toMatch(/enough approvals/);
    await at.approve(BEN, number);
    expect(await lifecycles(at, names)).toEqual(['Proposed', 'Proposed', 'Proposed']);
    await expect.poll(merge, WAIT).toBe('merged');
    await expect.poll(() => lifecycles(at, names), WAIT).toEqual(['Published', 'Published', 'Published']);
    const [pull, ...others] = await at.pulls();
    expect(others).toEqual([]);
    expect(pull).toMatchObject({ number, merged: true });
    const commit = pull?.merge_commit_sha;
    for (const revision of await at.revisions(names))
      expect(revision).toMatchObject({ revision: 1, commit, outOfBand: undefined });
    expect(git(at.gitDir, ['tag']).trim().split('\n')).toEqual(PACKAGES.map((name) => `${name}/v1`));
    for (const name of PACKAGES) expect(git(at.gitDir, ['rev-parse', `${name}/v1^{commit}`]).trim()).toBe(commit);
    await expect.poll(() => branches(at).trim(), WAIT).toBe('refs/heads/main');
    for (const name of names)
      await expect.poll(async () => (await at.pulls())[0]?.body, WAIT).toContain(publishedBy(name, ANNA));
  });

  test('a command rejects one; closing the pull request rejects the others, and opening it again proposes them', async () => {
    const review = { publishOn: 'merge', batch: {} };
    await using at = await ReviewedRepository.open(gitea, 'batch-close', [ANNA, BEN], review);
    const names = await at.propose(...PACKAGES);
    const { number, head } = await opened(at, names);
    await at.comment(BEN, number, `/sluice reject ${names[2]} too large`);
    await expect.poll(() => lifecycles(at, names), WAIT).toEqual(['Proposed', 'Proposed', 'Draft']);
    await expect.poll(async () => (await at.pulls())[0]?.head.sha, WAIT).not.toBe(head.sha);
    const [left] = await at.pulls();
    expect(left).toMatchObject({ number, state: 'open' });
    expect(
      git(at.gitDir, ['ls-tree', '--name-only', left?.head.sha ?? ''])
        .trim()
        .split('\n'),
    ).toEqual(['README.md', 'api', 'db']);
    await at.comment(BEN, number, 'not this week');
    await at.api('PATCH', `/pulls/${number}`, { state: 'closed' }, BEN);
    await expect.poll(() => lifecycles(at, names), WAIT).toEqual(['Draft', 'Draft', 'Draft']);
    const [api, db, web] = await at.revisions(names);
    for (const one of [api, db])
      expect(one?.record?.steps.at(-1)).toMatchObject({
        action: 'reject',
        reason: expect.stringContaining(`was closed by ${BEN}: not this week`),
      });
    expect(web?.record?.steps.at(-1)).toMatchObject({ action: 'reject', reason: expect.stringMatching(/^too large/) });
    expect(await at.pulls()).toMatchObject([{ number, state: 'closed', merged: false }]);
    expect(git(at.gitDir, ['tag'])).toBe('');
    await expect.poll(async () => (await at.pulls())[0]?.body, WAIT).toContain('Open this pull request again');
    await at.api('PATCH', `/pulls/${number}`, { state: 'open' }, BEN);
    await expect.poll(() => lifecycles(at, names), WAIT).toEqual(['Proposed', 'Proposed', 'Draft']);
    await expect.poll(async () => (await at.pulls())[0]?.body, WAIT).toContain('### `');
    expect(await at.pulls()).toMatchObject([{ number, state: 'open' }]);
    await at.api('PATCH', `/pulls/${number}`, { state: 'closed' }, BEN);
    await expect.poll(() => lifecycles(at, names), WAIT).toEqual(['Draft', 'Draft', 'Draft']);
  });

  test('an approving review publishes each by itself, and the pull request is closed', async () => {
    const review = { publishOn: 'review', batch: {} };
    await using at = await ReviewedRepository.open(gitea, 'batch-review', [ANNA, BEN], review);
    const names = await at.propose(...PACKAGES);
    const { number } = await opened(at, names);
    await at.approve(BEN, number);
    await expect.poll(() => lifecycles(at, names), WAIT).toEqual(['Published', 'Published', 'Published']);
    for (const revision of await at.revisions(names))
      expect(revision).toMatchObject({ revision: 1, outOfBand: undefined });
    await expect.poll(() => at.pulls(), WAIT).toMatchObject([{ number, state: 'closed', merged: false }]);
    for (const name of names)
      await expect.poll(async () => (await at.pulls())[0]?.body, WAIT).toContain(publishedBy(name, BEN));
    expect(git(at.gitDir, ['tag']).trim().split('\n')).toEqual(PACKAGES.map((name) => `${name}/v1`));
    await expect.poll(() => branches(at).trim(), WAIT).toBe('refs/heads/main');
  });
});
