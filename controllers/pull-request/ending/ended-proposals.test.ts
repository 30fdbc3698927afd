import { beforeEach, describe, expect, test, vi } from 'vitest';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { PUSH_ACTOR } from '../../../src/package/model/gates/verdict.ts';
import { ANNA } from '../../../test/support/fixture.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import { writeCommit, writeObject, writeRef } from '../../../test/support/git/write-objects.ts';
import { BERTA, eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';
import { PullRequests } from '../pull-requests.ts';

describe('the pull request of a proposal that has ended', () => {
  const open = eachProposals();
  let at: Proposals;
  let name: string;
  beforeEach(async () => {
    at = open();
    at.serveBranches();
    await at.policy();
    name = await at.propose();
    await at.settle();
    // The clock of the host is ahead of the one of the test.
    at.clock.advance(Date.UTC(2031, 0, 1) - at.clock.now());
    at.forge.skip(366 * 86_400);
  });
  const bodyOf = (number: number) => at.forge.pulls[number - 1]?.body ?? '';
  const reply = () =>
    at.forge.commentsOf.get(1)?.find(({ isOwn, body }) => isOwn && body.includes('topic=commands'))?.body ?? '';
  /** As a host does when the branch is gone. */
  const closeByHost = () => at.forge.change(1, { state: 'closed' });

  test.each([
    { what: 'the same process', restarts: false },
    { what: 'another process', restarts: true },
  ])('by a rejection while the host merged it is reported, and nothing is published: $what', async ({ restarts }) => {
    const commit = await at.mergeHead(name, 'bob');
    await at.world.store.update(name, { action: 'reject' }, ANNA);
    if (restarts) at.restart();
    await at.settle(60_000);
    expect(at.revision(name).lifecycle).toBe('Draft');
    expect(git(at.path, ['rev-parse', 'main'])).toBe(commit);
    expect(await at.world.events(name)).toContainEqual(
      expect.stringMatching(/^MergeNotPublished: .*\/1 was merged by bob, and publishes nothing/),
    );
    const comments = () => (at.forge.commentsOf.get(1) ?? []).filter(({ body }) => body.includes('### Not published'));
    expect(comments()).toHaveLength(1);
    at.restart();
    const [before] = comments();
    await at.settle(60_000);
    expect(comments()).toEqual([before]);
  });

  test.each(['reject', 'delete'] as const)(
    'by what was advised of a merge that publishes nothing is not reported once more: %s',
    async (action) => {
      await at.mergeAs(1, 'bob');
      await at.settle(60_000);
      expect((await at.world.events(name)).at(-1)).toMatch(/^MergedOutside: .*revert the merge and reject it/);
      await at.world.store.update(name, { action }, ANNA);
      await at.settle(60_000);
      at.restart();
      await at.settle(60_000);
      expect(at.forge.commentsOf.get(1) ?? []).toEqual([]);
      for (const of of [name, 'apps'])
        expect(await at.world.events(of)).not.toContainEqual(expect.stringMatching(/^MergeNotPublished/));
    },
  );

  describe('and was closed by a user', () => {
    beforeEach(async () => {
      at.forge.closings.set(1, { by: 'bob', comment: 'not now' });
      at.forge.change(1, { state: 'closed' });
      await at.settle();
      expect(at.revision(name).lifecycle).toBe('Draft');
      expect(git(at.path, ['for-each-ref', '--format=%(refname)', 'refs/heads/proposed'])).toBe('');
      expect(bodyOf(1)).toContain('is Draft now.');
      expect(bodyOf(1)).toContain('restore the branch of this pull request, and open it again');
    });

    test('has no approvals from before when it is opened again', async () => {
      at.forge.review(1, 'bob', 'approved', at.revision(name).commit);
      at.clock.advance(2 * 365 * 86_400_000);
      at.forge.change(1, { state: 'open' });
      await at.world.store.update(name, { action: 'propose' }, BERTA);
      await at.world.store.update(name, { action: 'reject' }, ANNA);
      await at.world.store.update(name, { action: 'propose' }, BERTA);
      await at.settle(60_000);
      await at.settle(60_000);
      expect(at.forge.pulls.map(({ state }) => state)).toEqual(['open']);
      expect(at.revision(name).lifecycle).toBe('Proposed');
    });

    test.each([
      { what: 'the same process', restarts: false },
      { what: 'another process', restarts: true },
      { what: 'another process, and another name of the repository', restarts: true, repository: 'renamed' },
    ])('is proposed again when it is opened again without its branch: $what', async ({ restarts, repository }) => {
      await at.settle(3_600_000);
      if (restarts) at.restart();
      at.forge.change(1, { state: 'open', url: `https://git.example.com/owner/${repository ?? 'apps'}/pulls/1` });
      await at.settle(60_000);
      expect(at.revision(name).lifecycle).toBe('Proposed');
      expect(at.revision(name).record?.steps.at(-1)).toMatchObject({
        ...{ action: 'propose', by: 'berta' },
        reason: expect.stringContaining('/1 was opened again'),
      });
      expect(git(at.path, ['for-each-ref', '--format=%(refname)', 'refs/heads/proposed']).trim()).toBe(
        'refs/heads/proposed/app/w1',
      );
      expect(at.forge.pulls.map(({ state }) => state)).toEqual(['open']);
      expect(bodyOf(1)).toContain('Closing this pull request rejects the proposal');
      expect(await at.world.events(name)).toContainEqual(expect.stringMatching(/^PullRequestReopened: /));
      at.forge.skip(60);
      at.forge.review(1, 'bob', 'approved', at.revision(name).commit);
      await at.settle();
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    });

    test('stays a draft where that has changed since, and after a week', async () => {
      await at.world.store.change(
        name,
        { files: new Map([['b.yaml', Buffer.from('kind: B\napiVersion: v1\nmetadata: {name: b}\n')]]) },
        ANNA,
      );
      at.forge.change(1, { state: 'open' });
      await at.settle(60_000);
      expect(at.revision(name).lifecycle).toBe('Draft');
      at.forge.change(1, { state: 'closed' });
      await at.settle(60_000);
      at.forge.calls.length = 0;
      await at.settle(60_000);
      expect(at.forge.calls).toContain('listUpdated');
      at.clock.advance(8 * 86_400_000);
      await at.settle(60_000);
      at.forge.calls.length = 0;
      await at.settle(60_000);
      expect(at.forge.calls).toEqual([]);
    });

    test('is the proposal of an unknown user where its branch has other content when it is opened again', async () => {
      const { commit } = at.revision(name);
      const blob = writeObject(at.path, 'blob', 'kind: B\napiVersion: v1\nmetadata: {name: b}\n');
      const list = (of: string) => git(at.path, ['ls-tree', of]);
      const app = git(at.path, ['mktree'], `100644 blob ${blob}\tb.yaml\n${list(`${commit}:app`)}\n`).trim();
      const tree = git(at.path, ['mktree'], `${list(commit).replace(/[0-9a-f]+\tapp$/m, `${app}\tapp`)}\n`).trim();
      const other = writeCommit(at.path, { tree, parents: [commit], message: 'Add b\n' });
      writeRef(at.path, 'refs/heads/proposed/app/w1', other);
      await at.sync();
      at.forge.change(1, { state: 'open' });
      await at.settle(60_000);
      const last = () => at.revision(name).record?.steps.at(-1);
      expect(last()).toMatchObject({ action: 'propose', by: PUSH_ACTOR, commit: other });
      closeByHost();
      await at.settle(60_000);
      expect((await at.world.events(name)).at(-1)).toMatch(
        /^PullRequestFailed: cannot reject .*remove .*proposed.app.w1 to keep that draft, or .*drafts.app.w1 to reject/,
      );
      git(at.path, ['update-ref', '-d', 'refs/heads/drafts/app/w1']);
      await at.sync();
      await at.settle(120_000);
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Draft', commit: other });
      expect(last()).toMatchObject({ action: 'reject', reason: expect.stringContaining('/1 was closed') });
    });

    test('is read for ten minutes more where the host requires its branch', async () => {
      at.forge.reopensWithoutBranch = false;
      await at.settle(700_000);
      at.forge.calls.length = 0;
      await at.settle(60_000);
      expect(at.forge.calls).toEqual([]);
    });
  });

  test('because its branch was deleted, is no rejection once that is restored, also by another process', async () => {
    const { commit } = at.revision(name);
    at.forge.closings.set(1, { by: 'bob', comment: 'later' });
    git(at.path, ['update-ref', '-d', 'refs/heads/proposed/app/w1']);
    await at.world.store.repository('apps').sync();
    closeByHost();
    await at.settle();
    expect(at.world.store.find(name)).toBeUndefined();
    expect(bodyOf(1)).toContain('is deleted now. To propose it again as it is, restore the branch');
    at.restart();
    git(at.path, ['update-ref', 'refs/heads/proposed/app/w1', commit]);
    await at.world.store.repository('apps').sync();
    await at.settle();
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Proposed', commit });
    expect((await at.world.events(name)).at(-1)).toMatch(/^PullRequestClosed: .*open it again on the host/);
    at.forge.change(1, { state: 'open' });
    await at.settle(60_000);
    expect(at.forge.pulls.map(({ state }) => state)).toEqual(['open']);
    expect(bodyOf(1)).toContain('Closing this pull request rejects the proposal');
    at.forge.change(1, { state: 'closed' });
    await at.settle();
    expect(at.revision(name).record?.steps.at(-1)?.reason).toMatch(/was closed by bob: later$/);
  });

  test('gets its last text from the next process if one ends before, once', async () => {
    at.forge.before = (method) => {
      if (method === 'update') throw new Error('the process ends');
    };
    await at.world.store.update(name, { action: 'approve' }, ANNA);
    await expect(at.reconcile(name)).rejects.toThrow('the process ends');
    at.forge.before = () => undefined;
    closeByHost();
    expect(bodyOf(1)).not.toContain('is Published now.');
    at.restart();
    await at.settle(60_000);
    expect(bodyOf(1)).toContain('`apps.app.w1` is Published now. Last step: `approve` by `anna`');
    at.forge.calls.length = 0;
    for (let times = 0; times < 2; times += 1) {
      at.restart();
      await at.settle(60_000);
    }
    expect(at.forge.calls).not.toContain('update');
    expect(at.forge.calls).not.toContain('setComment');
  });

  test('is kept as long as it is followed, and not as long as others are', async () => {
    const kept = new Set<PullRequests>();
    const { poll } = PullRequests.prototype;
    const spy = vi.spyOn(PullRequests.prototype, 'poll').mockImplementation(function (this: PullRequests, ...args) {
      kept.add(this);
      return poll.apply(this, args);
    });
    await at.proposeAll('web');
    await at.settle();
    await at.world.store.update(name, { action: 'approve' }, ANNA);
    closeByHost();
    await at.settle(60_000);
    const isKept = () => [...kept].some((one) => one.readWithin('proposed/app/w1', 1, 3_600_000) !== undefined);
    expect(isKept()).toBe(true);
    await at.settle(700_000);
    expect(isKept()).toBe(false);
    spy.mockRestore();
  });

  test('that ended more than a week ago is not looked at', async () => {
    await at.world.store.update(name, { action: 'approve' }, ANNA);
    await at.settle();
    at.clock.advance(8 * 86_400_000);
    at.restart();
    at.forge.calls.length = 0;
    await at.settle(60_000);
    expect(at.forge.calls).toEqual([]);
  });

  describe('replies to commands of listed users that come too late', () => {
    const row = (command: string, result: string) =>
      `| \`/sluice ${command}\` | \`bob\` as \`bob@example.com\` | **Refused**: \`apps.app.w1 ${result}\` |`;

    test('unread until the publication, and after it', async () => {
      at.forge.comment(1, 'bob', '/sluice rerun');
      await at.world.store.update(name, { action: 'approve' }, ANNA);
      await at.settle();
      closeByHost();
      expect(reply()).toContain(row('rerun', 'is Published already'));
      at.forge.comment(1, 'mallory', '/sluice why');
      at.forge.comment(1, 'bob', '/sluice approve');
      await at.settle(60_000);
      expect(reply()).toContain(row('approve', 'is Published already'));
      expect(reply()).toContain(row('rerun', 'is Published already'));
      expect(reply()).not.toContain('mallory');
      at.forge.calls.length = 0;
      await at.settle(60_000);
      expect(at.forge.calls).not.toContain('setComment');
    });

    test('after those that were executed', async () => {
      at.forge.comment(1, 'bob', '/sluice approve');
      at.forge.comment(1, 'bob', '/sluice why');
      await at.settle(60_000);
      expect(at.revision(name).lifecycle).toBe('Published');
      expect(reply()).toContain(row('why', 'is Published already'));
      expect(reply()).toContain('Done: `approved`');
    });

    test('to a draft, and to a revision that was deleted', async () => {
      await at.world.store.update(name, { action: 'reject' }, ANNA);
      at.forge.comment(1, 'bob', '/sluice approve');
      await at.settle();
      expect(reply()).toContain(row('approve', 'is a draft again; propose it first'));
      at.clock.advance(1000);
      await at.world.store.update(name, { action: 'propose' }, BERTA);
      closeByHost();
      await at.settle();
      expect(at.forge.pulls).toHaveLength(2);
      at.forge.comment(2, 'bob', '/sluice why');
      await at.world.store.update(name, { action: 'delete' }, ANNA);
      await at.settle();
      expect(at.forge.commentsOf.get(2)?.at(-1)?.body).toContain(row('why', 'was deleted'));
    });

    test('by the next process: those after the end, and the one that ended it', async () => {
      at.forge.comment(1, 'bob', '/sluice approve');
      at.forge.before = (method) => {
        if (method === 'setComment') throw new SluiceError('Unavailable', 'status 502');
      };
      await at.reconcile('apps');
      await expect(at.reconcile(name)).rejects.toThrow('status 502');
      at.forge.before = () => undefined;
      expect(at.revision(name).lifecycle).toBe('Published');
      closeByHost();
      at.forge.skip(60);
      at.forge.comment(1, 'bob', '/sluice why');
      at.restart();
      await at.settle(60_000);
      expect(reply()).toContain('| `/sluice approve` | `bob` as `bob@example.com` | Done: `approved` |');
      expect(reply()).toContain(row('why', 'is Published already'));
      const before = reply();
      at.forge.calls.length = 0;
      at.restart();
      await at.settle(60_000);
      expect(reply()).toBe(before);
      expect(at.forge.calls).not.toContain('setComment');
    });

    test.each(['approve', 'reject no'])(
      'and not by one of two processes to what the other one did: %s',
      async (command) => {
        const back = at.beside();
        await at.settle();
        at.forge.comment(1, 'bob', `/sluice ${command}`);
        await at.settle(15_000);
        const before = reply();
        closeByHost();
        back();
        await at.settle(60_000);
        expect(before).toContain('Done: ');
        expect(reply()).toBe(before);
      },
    );

    test.each([
      { command: 'approve', done: 'Done: `approved`' },
      { command: 'reject no', done: 'Done: `rejected`' },
    ])('and not to one whose response was lost: $command', async ({ command, done }) => {
      const update = at.world.store.update.bind(at.world.store);
      const spy = vi.spyOn(at.world.store, 'update').mockImplementation(async (...args) => {
        const updated = await update(...args);
        if (args[2].dryRun !== true) throw new SluiceError('Unavailable', 'the connection was lost');
        return updated;
      });
      at.forge.comment(1, 'bob', `/sluice ${command}`);
      await at.settle(15_000);
      spy.mockRestore();
      closeByHost();
      await at.settle(60_000);
      expect(at.revision(name).lifecycle).not.toBe('Proposed');
      expect(reply()).toContain(done);
      expect(reply()).not.toContain('Refused');
    });

    test('that the host does not take is no obstacle', async () => {
      at.forge.comment(1, 'bob', '/sluice rerun');
      await at.world.store.update(name, { action: 'approve' }, ANNA);
      at.forge.before = (method) => {
        if (method === 'setComment') throw new SluiceError('Refused', 'it is locked');
      };
      await at.settle(60_000);
      expect(bodyOf(1)).toContain('is Published now.');
    });
  });
});
