import { describe, expect, inject, test, vi } from 'vitest';
import { git } from '../support/git/git-cli.ts';
import { skipFor } from '../support/skip.ts';
import { Gitea } from './support/gitea.ts';
import { ReviewedRepository } from './support/reviewed-repository.ts';

const missing = inject('giteaMissing');
const WAIT = { timeout: 60_000, interval: 300 };

describe('a merge with which the branch is removed', {
  ...skipFor(missing !== '' && missing),
  timeout: 180_000,
}, () => {
  const gitea = new Gitea({ url: inject('giteaUrl'), folder: inject('giteaFolder') });

  test.each(['merge', 'squash', 'rebase'] as const)('is published: %s', async (method) => {
    const name = `removed-${method}`;
    const bob = `${name}-bob`;
    await using at = await ReviewedRepository.open(gitea, name, [bob], { publishOn: 'merge' });
    const [web = ''] = await at.propose('web');
    const head = await vi.waitFor(async () => {
      const [pull] = await at.pulls();
      expect(await at.statuses(pull?.head.sha ?? '')).toMatchObject({ 'sluice/ready': 'success' });
      return pull?.head.sha ?? '';
    }, WAIT);
    // The main branch has moved, so that a rebase makes another commit.
    const note = { branch: 'main', message: 'unrelated', content: Buffer.from('a\n').toString('base64') };
    await at.api('POST', '/contents/note.md', note, bob);
    // Gitea refuses it until it has checked whether there is a conflict.
    await vi.waitFor(
      () => at.api('POST', '/pulls/1/merge', { Do: method, delete_branch_after_merge: true }, bob),
      WAIT,
    );
    const branches = () => git(at.gitDir, ['for-each-ref', '--format=%(refname)', 'refs/heads/proposed']).trim();
    const { world } = at;
    // Sluice reads the removal before the merge.
    await world.store.repository('apps').sync();
    await vi.waitFor(async () => {
      await world.store.repository('apps').sync();
      expect(world.store.find(web)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    }, WAIT);
    const [pull] = await at.pulls();
    expect(pull).toMatchObject({ merged: true, head: { sha: head } });
    expect(world.store.get(web).commit).toBe(pull?.merge_commit_sha);
    expect((await world.store.evaluate(web)).record.steps.at(-1)?.by).toBe(`${bob}@example.com`);
    await vi.waitFor(() => expect(branches()).toBe(''), WAIT);
    await vi.waitFor(async () => expect((await at.pulls())[0]?.body).toContain('is Published now'), WAIT);
  });
});
