import { beforeEach, describe, expect, test } from 'vitest';
import { ANNA } from '../../../test/support/fixture.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import { BERTA, eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';

describe('a merge that arrives late, with another pull request of its branch', () => {
  const open = eachProposals();
  const ref = 'refs/heads/main';
  let at: Proposals;
  let name: string;
  let host: string;
  let commit: string;
  beforeEach(async () => {
    at = open();
    await at.policy({ publishOn: 'merge' });
    name = await at.propose();
    await at.settle();
    host = `${at.path}-host`;
    git(at.path, ['clone', '-q', '--mirror', at.path, host]);
    commit = await at.mergeHead(name, 'bob', 'squash', 1, host);
  });

  async function openAnother(body = ''): Promise<void> {
    await at.forge.open({ head: 'proposed/app/w1', base: 'main', title: 'more', body });
  }

  async function arrive(): Promise<void> {
    git(at.path, ['fetch', '-q', host, `+${ref}:${ref}`]);
    await at.sync();
    await at.settle(60_000);
  }

  const reports = async () => (await at.world.events(name)).filter((one) => one.startsWith('MergeNotPublished'));

  test.each([30, 120, 1200])('is published: after %i seconds', async (seconds) => {
    await openAnother();
    await at.settle(seconds * 1000);
    expect(at.revision(name).lifecycle).toBe('Proposed');
    expect(await reports()).toHaveLength(seconds < 60 ? 0 : 1);
    await arrive();
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', commit });
  });

  test.each([
    ['that one has its marker', false],
    ['that one has its marker, and a user has edited a comment of Sluice to be the report of it', true],
  ])('is published by a new process, although %s', async (_, isEdited) => {
    if (isEdited) await at.forge.setComment(1, 'not-published', 'thanks');
    await openAnother(at.forge.pulls[0]?.body);
    at.restart();
    await at.settle(120_000);
    expect(at.revision(name).lifecycle).toBe('Proposed');
    await arrive();
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', commit });
  });

  test('is published if its commit is read before the main branch', async () => {
    await openAnother();
    await at.settle(120_000);
    git(at.path, ['fetch', '-q', host, `${ref}:refs/tmp/main`]);
    at.clock.advance(60_000);
    await at.reconcile(name);
    expect(at.revision(name).lifecycle).toBe('Proposed');
    await arrive();
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', commit });
  });

  test.each([
    { when: 'by the same process', restarts: [] },
    { when: 'by a new process', restarts: ['before'] },
    { when: 'by two processes, of which the first one ends after the publication', restarts: ['before', 'after'] },
  ])('has no comment that contradicts its publication: $when', async ({ restarts }) => {
    git(at.path, ['fetch', '-q', host, `${ref}:refs/tmp/main`]);
    await at.settle(60_000);
    const comments = () => (at.forge.commentsOf.get(1) ?? []).map(({ body }) => body);
    expect(comments()).toEqual([expect.stringContaining('### Not published')]);
    if (restarts.includes('before')) at.restart();
    git(at.path, ['fetch', '-q', host, `+${ref}:${ref}`]);
    await at.sync();
    if (restarts.includes('after')) {
      await at.reconcile(name);
      expect(at.revision(name).lifecycle).toBe('Published');
      expect(comments()).toEqual([expect.stringContaining('### Not published')]);
      at.restart();
    }
    await at.settle(60_000);
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', commit });
    expect(comments()).toEqual([expect.stringContaining('### Published: package revision `apps.app.w1`')]);
    expect(at.forge.pulls[0]?.body).toContain('is Published now');
  });
});

describe('a merge of a proposal that was deleted, created and proposed again', () => {
  const open = eachProposals();

  test.each([
    { publishOn: 'merge', restarts: false },
    { publishOn: 'merge', restarts: true },
    { publishOn: 'approval', restarts: false },
  ] as const)('is reported once: $publishOn, restart: $restarts', async ({ publishOn, restarts }) => {
    const at = open();
    await at.policy({ publishOn });
    const name = await at.propose();
    await at.settle();
    await at.mergeHead(name, 'bob', 'merge', 1);
    await at.world.store.update(name, { action: 'delete' }, ANNA);
    const files = { 'other.yaml': 'kind: B\napiVersion: v1\nmetadata: {name: b}\n' };
    expect((await at.world.draft('apps/app/w1', files)).name).toBe(name);
    await at.world.store.update(name, { action: 'propose' }, BERTA);
    if (restarts) at.restart();
    await at.settle(120_000);
    const reported = (await at.world.events(name)).filter((text) => text.startsWith('MergeNotPublished'));
    expect(reported).toEqual([expect.stringContaining('its proposal had ended when that was read')]);
    expect(at.forge.pulls).toMatchObject([{ state: 'merged' }, { state: 'open' }]);
    const comments = (at.forge.commentsOf.get(1) ?? []).map(({ body }) => body);
    expect(comments).toContainEqual(expect.stringContaining('### Not published'));
  });
});

describe('the branch of a rejected proposal', () => {
  const open = eachProposals();

  test('from which a user has merged another package gets no report about the proposal', async () => {
    const at = open();
    await at.policy({ publishOn: 'merge' });
    at.serveBranches();
    const name = await at.propose();
    await at.settle();
    await at.world.store.update(name, { action: 'reject' }, ANNA);
    await at.settle();
    at.forge.change(1, { state: 'closed' });
    const branch = 'proposed/app/w1';
    const pushed = await at.world.push(at.path, { 'db/Kptfile': 'kind: Kptfile\n' }, branch, 'refs/heads/main');
    await at.forge.open({ head: branch, base: 'main', title: 'more', body: '' });
    git(at.path, ['update-ref', 'refs/heads/main', pushed]);
    git(at.path, ['update-ref', '-d', `refs/heads/${branch}`]);
    const head = { branch, commit: pushed, isSameRepository: true };
    const { updatedAt: closedAt } = at.forge.change(2, {
      state: 'merged',
      head,
      merged: { commit: pushed, by: 'bob' },
    });
    at.forge.change(2, { closedAt });
    await at.sync();
    for (let turn = 0; turn < 15; turn += 1) await at.settle(60_000);
    expect((await at.world.events(name)).filter((one) => one.startsWith('MergeNotPublished'))).toEqual([]);
    expect(at.forge.commentsOf.get(2) ?? []).toEqual([]);
  });
});
