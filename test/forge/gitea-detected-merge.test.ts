import { describe, expect, inject, test, vi } from 'vitest';
import { skipFor } from '../support/skip.ts';
import { Gitea } from './support/gitea.ts';
import { ReviewedRepository } from './support/reviewed-repository.ts';

const missing = inject('giteaMissing');
const WAIT = { timeout: 60_000, interval: 300 };

describe('merges that Gitea detects by itself', skipFor(missing !== '' && missing), () => {
  const gitea = new Gitea({ url: inject('giteaUrl'), folder: inject('giteaFolder') });
  const file = (branch: string, text: string) => ({
    ...{ branch, message: text, content: Buffer.from(`${text}\n`).toString('base64') },
  });

  /** A proposal, whose pull request is open. Without a review its check passes only where a merge is an approval. */
  async function propose(name: string, options: Record<string, boolean>, ready: 'pending' | 'success') {
    const users = [`${name}-bob`, `${name}-mallory`];
    const at = await ReviewedRepository.open(gitea, name, users, { publishOn: 'merge' });
    await at.api('PATCH', '', options);
    const [web = ''] = await at.propose('web');
    const head = await vi.waitFor(async () => {
      const [pull] = await at.pulls();
      expect(await at.statuses(pull?.head.sha ?? '')).toMatchObject({ 'sluice/ready': ready });
      return pull?.head.sha ?? '';
    }, WAIT);
    return { at, web, head };
  }
  const published = (at: ReviewedRepository, name: string) =>
    vi.waitFor(async () => {
      const [revision] = await at.revisions([name]);
      expect(revision?.lifecycle).toBe('Published');
      return revision;
    }, WAIT);

  test('are no approval of the user who pushed to the branch last', async () => {
    const { at, web, head } = await propose('detected', { autodetect_manual_merge: true }, 'pending');
    await using _ = at;
    const [mallory, bob] = ['detected-mallory', 'detected-bob'];
    // The head becomes another one, so that Gitea does not see the merge yet.
    await at.api('POST', '/contents/web/b.yaml', file('proposed/web/w1', 'kind: B'), mallory);
    await at.push(mallory, head, 'main');
    await at.api('POST', '/contents/note.md', file('main', 'unrelated'), bob);
    await at.push(mallory, head, 'proposed/web/w1');
    await vi.waitFor(async () => {
      expect(await at.api('GET', '/pulls/1')).toMatchObject({ merged: true, merged_by: { login: bob } });
    }, WAIT);
    const revision = await published(at, web);
    expect(revision?.outOfBand).toMatchObject({
      ...{ reason: 'NotApproved', message: expect.stringContaining('the option autodetect_manual_merge') },
    });
  });

  test('and a merge with the button is one where the repository detects none', async () => {
    const { at, web } = await propose('undetected', { autodetect_manual_merge: false }, 'success');
    await using _ = at;
    // Gitea refuses it until it has checked whether there is a conflict.
    await vi.waitFor(() => at.api('POST', '/pulls/1/merge', { Do: 'merge' }, 'undetected-bob'), WAIT);
    const revision = await published(at, web);
    expect(revision?.outOfBand).toBeUndefined();
    expect((await at.world.store.evaluate(web)).record.steps.at(-1)?.by).toBe('undetected-bob@example.com');
  });
});
