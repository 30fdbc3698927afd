import { beforeEach, describe, expect, test } from 'vitest';
import { ANNA } from '../../../test/support/fixture.ts';
import { eachUserPulls, KPTFILE, MAP, type UserPullBench } from '../../../test/support/user-pull-bench.ts';
import { PULL_ANNOTATION } from './adopted-draft.ts';

describe('a draft with the name of one that is adopted', () => {
  const open = eachUserPulls();
  let at: UserPullBench;
  beforeEach(() => {
    at = open();
  });
  const MALLORY = { ...ANNA, actor: { name: 'mallory' } };
  const draft = () => at.world.store.find('apps.web.pr-1');
  const FILES = { 'web/Kptfile': KPTFILE(), 'web/map.yaml': MAP };
  async function pushed(files: Readonly<Record<string, string>>): Promise<void> {
    await at.world.push(at.path, files, 'drafts/web/pr-1');
    await at.world.store.repository('apps').refresh();
  }
  async function adopt(): Promise<string | undefined> {
    at.forge.comment(1, 'bob', '/sluice adopt');
    at.forge.change(1, {});
    for (let turn = 0; turn < 3; turn += 1) await at.poll();
    return at.comment(1, 'adopt');
  }
  const REFUSED =
    /`web` was not adopted: `apps.web.pr-1` has the name of its draft, and .* not known to be of this pull request/;

  const plants: readonly [string, () => Promise<unknown>][] = [
    ['created', () => at.world.draft('apps/web/pr-1', { 'evil.yaml': MAP })],
    ['pushed', () => pushed({ ...FILES, 'web/evil.yaml': MAP })],
    [
      'created, and that claims to be of the pull request',
      async () => {
        const { name } = await at.world.draft('apps/web/pr-1', { 'evil.yaml': MAP });
        const annotations = { [PULL_ANNOTATION]: 'https://git.example.com/owner/apps/pulls/1' };
        await at.world.store.change(name, { metadata: { annotations } }, MALLORY);
      },
    ],
    [
      'created, and has proposed',
      async () => {
        const { name } = await at.world.draft('apps/web/pr-1', { 'evil.yaml': MAP });
        await at.world.settle(name);
        await at.world.store.update(name, { action: 'propose' }, MALLORY);
      },
    ],
  ];
  test.each(plants)('is not taken over where another user has %s it', async (_, plant) => {
    await at.policy();
    await plant();
    const before = draft()?.etag;
    await at.pull(FILES);
    await at.poll();
    expect(at.comment(1)).not.toContain('Adopted as the draft');
    expect(await adopt()).toMatch(REFUSED);
    expect(draft()).toMatchObject({ etag: before });
    expect(at.comment(1)).not.toContain('Adopted as the draft');
    const { lifecycle } = at.world.store.get('apps.web.pr-1');
    if (lifecycle !== 'Draft') return;
    await at.world.store.update('apps.web.pr-1', { action: 'delete' }, MALLORY);
    expect(await adopt()).toContain('The packages are adopted as drafts.');
    expect(draft()?.commit).toBe(at.forge.pulls[0]?.head.commit);
  });

  test('is not taken for one where the policy adopts by itself', async () => {
    await at.policy({ userPullRequests: 'adopt' });
    await pushed({ ...FILES, 'web/evil.yaml': MAP });
    await at.pull(FILES);
    await at.poll();
    expect(at.comment(1, 'adopt')).toMatch(REFUSED);
    expect(at.comment(1)).not.toContain('Adopted as the draft');
  });

  test('is adopted if it has the content of the head, and stays adopted with later commits on both', async () => {
    await at.policy();
    await pushed(FILES);
    await at.pull(FILES);
    expect(await adopt()).toContain('The packages are adopted as drafts.');
    expect(draft()?.record?.annotations).toMatchObject({ [PULL_ANNOTATION]: expect.stringContaining('/pulls/1') });
    await at.world.store.update('apps.web.pr-1', { action: 'delete' }, ANNA);
    await adopt();
    await at.world.store.change('apps.web.pr-1', { files: new Map([['b.yaml', Buffer.from(MAP)]]) }, ANNA);
    const { etag } = at.world.store.get('apps.web.pr-1');
    await at.pull({ 'web/c.yaml': MAP }, { onTop: true });
    expect(await adopt()).toContain('The packages are adopted as drafts.');
    expect(draft()?.etag).toBe(etag);
    expect(at.comment(1)).toContain('Adopted as the draft `apps.web.pr-1`.');
  });

  test('stays as it is after a force-push to the branch, and the reply says how to keep its changes', async () => {
    await at.policy();
    const first = await at.pull(FILES);
    await adopt();
    await at.world.store.change('apps.web.pr-1', { files: new Map([['b.yaml', Buffer.from(MAP)]]) }, ANNA);
    const before = draft()?.etag;
    const second = await at.pull({ ...FILES, 'web/c.yaml': MAP });
    const reply = await adopt();
    expect(reply).toContain(`was adopted from this pull request at \`${first.slice(0, 12)}\`; it has neither`);
    expect(reply).toContain(`\`${second.slice(0, 12)}\`, the present head, as after a force-push`);
    expect(reply).toContain('first save the changes that only the draft has');
    expect(draft()?.etag).toBe(before);
  });
});
