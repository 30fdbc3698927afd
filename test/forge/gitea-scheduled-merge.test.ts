import { describe, expect, inject, test, vi } from 'vitest';
import { skipFor } from '../support/skip.ts';
import { Gitea } from './support/gitea.ts';
import { ReviewedRepository } from './support/reviewed-repository.ts';

const missing = inject('giteaMissing');
const WAIT = { timeout: 60_000, interval: 300 };
const TESTED = 'example.com/Tested';

describe('merges that users of Gitea schedule', skipFor(missing !== '' && missing), () => {
  const gitea = new Gitea({ url: inject('giteaUrl'), folder: inject('giteaFolder') });
  const spec = { requiredGates: [{ conditionType: TESTED, approveOnly: true }] };

  async function open(name: string, review: Record<string, unknown> = {}): Promise<ReviewedRepository> {
    const users = [`${name}-bob`, `${name}-mallory`];
    const at = await ReviewedRepository.open(gitea, name, users, { publishOn: 'merge', ...review }, spec);
    await at.api('POST', '/branch_protections', {
      ...{ rule_name: 'main', enable_push: false, enable_status_check: true, status_check_contexts: ['sluice/ready'] },
    });
    return at;
  }
  const schedule = (at: ReviewedRepository, user: string) =>
    vi.waitFor(async () => {
      const [pull] = await at.pulls();
      expect(await at.statuses(pull?.head.sha ?? '')).toHaveProperty('sluice/ready');
      await at.api('POST', '/pulls/1/merge', { Do: 'merge', merge_when_checks_succeed: true }, user);
    }, WAIT);
  /** Opens the gate, so that the host merges. */
  const openGates = (at: ReviewedRepository, names: readonly string[]) =>
    vi.waitFor(async () => {
      await at.world.store.repository('apps').sync();
      for (const name of names)
        await at.world.store.change(
          name,
          { conditions: [{ type: TESTED, status: 'True' }] },
          { actor: { name: 'carl' }, face: 'api' },
        );
    }, WAIT);
  const published = (at: ReviewedRepository, names: readonly string[]) =>
    vi.waitFor(async () => {
      const revisions = await at.revisions(names);
      for (const one of revisions) expect(one.lifecycle).toBe('Published');
      return revisions;
    }, WAIT);

  test('are approvals of the content for which they were scheduled, also of one package of a shared pull request', async () => {
    await using at = await open('scheduled', { batch: {} });
    const [api = ''] = await at.propose('api');
    await schedule(at, 'scheduled-bob');
    const before = (await at.pulls())[0]?.head.sha;
    const [web = ''] = await at.propose('web');
    // Sluice itself adds the later proposal to the branch.
    await vi.waitFor(async () => expect((await at.pulls())[0]?.head.sha).not.toBe(before), WAIT);
    await openGates(at, [api, web]);
    const [first, second] = await published(at, [api, web]);
    expect(first?.outOfBand).toBeUndefined();
    const { record } = await at.world.store.evaluate(api);
    expect(record.steps.at(-1)).toMatchObject({ action: 'approve', by: 'scheduled-bob@example.com' });
    expect(second?.outOfBand).toMatchObject({
      ...{ reason: 'NotApproved', message: expect.stringContaining('as scheduled-bob had scheduled at') },
    });
  });

  test('are no approvals of what another user pushed later', async () => {
    await using at = await open('pushed');
    const [web = ''] = await at.propose('web');
    await schedule(at, 'pushed-bob');
    const file = { branch: 'proposed/web/w1', content: Buffer.from('kind: B\n').toString('base64'), message: 'b' };
    await at.api('POST', '/contents/web/b.yaml', file, 'pushed-mallory');
    await openGates(at, [web]);
    const [revision] = await published(at, [web]);
    expect(revision?.outOfBand).toMatchObject({
      ...{ reason: 'NotApproved', message: expect.stringMatching(/scheduled at .* has changed since/) },
    });
  });
});
