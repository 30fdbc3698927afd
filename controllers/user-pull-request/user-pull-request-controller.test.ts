import { beforeEach, describe, expect, test } from 'vitest';
import { SharedLists } from '../../src/forge/shared-lists.ts';
import type { Renderer } from '../../src/package/plan/ports/renderer.ts';
import {
  eachUserPulls,
  GATE,
  GATES,
  KPTFILE,
  LABELS,
  MAP,
  TESTED,
  type UserPullBench,
} from '../../test/support/user-pull-bench.ts';
import { listsOf } from '../pull-request/opened-repositories.ts';
import { SyncRequests } from '../repository/sync-requests.ts';

describe('user-pull-request controller', () => {
  const open = eachUserPulls();
  let at: UserPullBench;
  beforeEach(() => {
    at = open();
  });

  test('checks the packages of a branch of any name once, rendered and with their gates, and commits nothing', async () => {
    await at.policy({ gateChecks: [GATE] });
    const files = { 'web/Kptfile': KPTFILE(GATES + LABELS), 'web/map.yaml': MAP, 'README.md': 'text' };
    const commit = await at.pull(files);
    await at.poll();
    expect(at.titles(commit)).toEqual({
      'sluice/ready': `pending: 1 gate closed: ${GATE} of web`,
      [`sluice/gate/${GATE}`]: 'pending: web: the condition has not been set yet',
    });
    expect(at.forge.checks.get(commit)?.get('sluice/ready')?.annotations).toMatchObject([
      { path: 'web/map.yaml', line: 1, level: 'warning', title: 'NotRendered' },
    ]);
    expect(at.comment(1)).toContain('#### `web`');
    expect(at.comment(1)).toContain('+    team: shop');
    expect(at.comment(1)).toContain('Added `ConfigMap/web`');
    expect(await at.refs()).toEqual([]);
    // Its own comment is a change too, and times are in seconds.
    await at.poll();
    await at.poll();
    at.forge.calls.length = 0;
    await at.poll();
    expect(at.forge.calls).toEqual(['listUpdated']);
  });

  test('a condition that the branch brings leaves the comment as it is, however often it is checked', async () => {
    await at.policy();
    await at.pull({ 'web/Kptfile': KPTFILE(GATES, TESTED), 'web/map.yaml': MAP });
    // Its own comment is a change too, and times are in seconds.
    for (let turn = 0; turn < 3; turn += 1) await at.poll();
    at.forge.calls.length = 0;
    for (let turn = 0; turn < 3; turn += 1) await at.poll();
    expect(at.forge.calls).toEqual(['listUpdated', 'listUpdated', 'listUpdated']);
  });

  test.each(['button', 'comment'])('a user requests the checks of the head again: %s', async (way) => {
    await at.policy();
    const requests = new SyncRequests(at.clock);
    at.restart({ requests });
    const [key, other] = [{ namespace: 'default', name: 'apps' }, 'f'.repeat(40)];
    const commit = await at.pull({ 'web/Kptfile': KPTFILE(), 'web/map.yaml': MAP });
    const again = async () => {
      for (let turn = 0; turn < 3; turn += 1) await at.poll();
    };
    await again();
    const before = at.titles(commit);
    const rerun = async (head: string, author: string) => {
      if (way === 'button') requests.addReview(key, { rerun: head });
      else at.forge.comment(1, author, '/sluice rerun');
      requests.wake(key);
      await again();
    };
    at.forge.checks.clear();
    await rerun(other, 'mallory');
    expect(at.titles(commit)).toEqual({});
    await rerun(commit, 'bob');
    expect(at.titles(commit)).toEqual(before);
    // Once.
    at.forge.checks.clear();
    at.forge.change(1, {});
    await again();
    expect(at.titles(commit)).toEqual({});
  });

  test.each(['Secret', '&k Secret', '!!str Secret', '>-\n  Secret', '"Secret"'])(
    'the comment has no values of Secrets: kind %j',
    async (kind) => {
      await at.policy();
      const secret = (value: string) =>
        `${MAP}---\napiVersion: v1\nkind: ${kind}\nmetadata:\n  name: key\nstringData:\n  key: ${value}\n`;
      await at.world.push(at.path, { 'web/Kptfile': KPTFILE(), 'web/key.yaml': secret('hunter1') });
      await at.pull({ 'web/key.yaml': secret('hunter2'), 'web/map.yaml': MAP });
      await at.poll();
      expect(at.comment(1)).toContain('Modified `Secret/key`');
      expect(at.comment(1)).toContain('+kind: ConfigMap');
      expect(at.comment(1)).not.toContain('hunter');
    },
  );

  test('conditions of a pushed branch count as its push, and not those of a fork', async () => {
    await at.policy();
    const files = { 'web/Kptfile': KPTFILE(GATES, TESTED) };
    const own = await at.pull(files);
    const foreign = await at.pull({ ...files, 'web/README.md': 'of a stranger' }, { branch: 'other', isFork: true });
    await at.poll();
    expect(at.titles(own)['sluice/ready']).toMatch(/^success: 1 package checked/);
    expect(at.titles(foreign)['sluice/ready']).toBe(`pending: 1 gate closed: ${GATE} of web`);
    expect(at.comment(2)).toContain('The branch was not pushed to this repository');
  });

  test('a condition counts for the content that it was pushed for, and not for a merge with what came to the main branch since', async () => {
    await at.policy({ publishOn: 'merge' });
    await at.world.push(at.path, { 'web/Kptfile': KPTFILE(GATES), 'web/map.yaml': MAP }, 'main');
    await at.world.store.repository('apps').refresh();
    const commit = await at.pull({ 'web/Kptfile': KPTFILE(GATES, TESTED), 'web/map.yaml': `${MAP}  labels: {a: b}\n` });
    await at.poll();
    expect(at.titles(commit)['sluice/ready']).toMatch(/^success/);
    await at.world.push(at.path, { 'web/other.yaml': MAP }, 'main');
    await at.world.store.repository('apps').refresh();
    await at.poll();
    expect(at.titles(commit)['sluice/ready']).toBe(`pending: 1 gate closed: ${GATE} of web`);
    await at.merge(1, 'bob');
    await at.poll();
    const published = at.world.store.list({ lifecycle: 'Published' }).find(({ revision }) => revision > 0);
    expect(published).toMatchObject({ outOfBand: { reason: 'GateUnmet' } });
  });

  test('a fork runs with the restricted renderer, as does a head that is no branch of the repository', async () => {
    const used: string[] = [];
    const renderer = (name: string): Renderer => ({
      render: async (request) => {
        used.push(name);
        return at.renderers.render(request);
      },
    });
    at.restart({ renderer: renderer('full'), restrictedRenderer: renderer('restricted') });
    await at.policy();
    const files = { 'web/Kptfile': KPTFILE(LABELS), 'web/map.yaml': MAP };
    await at.pull(files);
    await at.pull({ ...files, 'web/other.yaml': MAP }, { branch: 'other', isFork: true });
    // As the host reports one that was pushed for review without a branch.
    await at.pull({ ...files, 'web/more.yaml': MAP }, { branch: 'agit', isFork: true });
    at.forge.change(3, { head: { ...at.forge.pulls[2]?.head, isSameRepository: true } as never });
    await at.poll();
    expect(used.sort()).toEqual(['full', 'restricted', 'restricted']);
  });

  test('a pull request without packages gets its check and no comment; proposals and other policies get nothing', async () => {
    await at.policy();
    const commit = await at.pull({ 'docs/page.md': 'text' });
    const proposal = await at.pull({ 'web/Kptfile': KPTFILE() }, { branch: 'proposed/web/v1' });
    await at.poll();
    expect(at.titles(commit)).toEqual({ 'sluice/ready': 'success: It changes no package' });
    expect(at.forge.commentsOf.size).toBe(0);
    expect(at.titles(proposal)).toEqual({});
    at.restart({ reviewsOf: async () => [] });
    at.forge.calls.length = 0;
    await at.poll();
    expect(at.forge.calls).toEqual([]);
  });

  test('a symbolic link in a package is refused and not followed', async () => {
    await at.policy();
    const files = { 'web/Kptfile': KPTFILE(), 'web/map.yaml': MAP };
    const commit = await at.pull(files, { links: { 'web/passwd.yaml': '/etc/passwd' } });
    await at.poll();
    expect(at.titles(commit)['sluice/ready']).toMatch(/^failure: 1 error: web\/passwd\.yaml:1: it is a symbolic link/);
    expect(at.comment(1)).toContain('`web/passwd.yaml:1`');
    expect(at.comment(1)).not.toContain('root:');
  });

  test('a package that moves on the main branch is checked again, and others are looked up once', async () => {
    await at.policy();
    const names = ['web', 'db'];
    await at.world.push(at.path, Object.fromEntries(names.map((name) => [`${name}/Kptfile`, KPTFILE()])));
    const web = await at.pull({ 'web/map.yaml': MAP });
    await at.pull({ 'db/map.yaml': MAP }, { branch: 'other' });
    for (let turn = 0; turn < 3; turn += 1) await at.poll();
    const repository = at.world.store.repository('apps');
    const { git } = repository;
    const stat = git.statObjects.bind(git);
    let read: string[] = [];
    git.statObjects = (some) => {
      read.push(...some);
      return stat(some);
    };
    const main = async (files: Readonly<Record<string, string>>) => {
      await at.world.push(at.path, files);
      await repository.refresh();
      read = [];
      await at.poll();
    };
    await main({ 'cache/Kptfile': KPTFILE() });
    expect(read).toHaveLength(2);
    read = [];
    await at.poll();
    expect(read).toEqual([]);
    await main({ 'web/Kptfile': KPTFILE(GATES) });
    await at.poll();
    expect(at.titles(web)['sluice/ready']).toMatch(/1 gate closed/);
  });

  test('a list that the controller of proposals has just read takes the place of its own', async () => {
    const lists = new SharedLists(at.clock);
    at.restart({ lists });
    await at.policy();
    for (const _ of ['open ones', 'changes']) await at.poll();
    const commit = await at.pull({ 'web/Kptfile': KPTFILE() });
    at.clock.advance(20_000);
    const secretRef = { name: 'forge', key: 'token' };
    const forge = { provider: 'gitea', api: 'https://git.example.com/api/v1', secretRef } as const;
    const { url } = at.world.store.repository('apps');
    const proposals = lists.reader(listsOf('default', url, { forge }));
    await proposals.updated(at.forge, { since: '1970-01-01T00:00:00Z', maxAgeMs: 0 }, new AbortController().signal);
    at.forge.calls.length = 0;
    await at.poll(10_000);
    expect(at.forge.calls).not.toContain('listUpdated');
    expect(at.titles(commit)['sluice/ready']).toMatch(/^success: 1 package checked/);
    // It is as old as it was read.
    await at.poll(20_000);
    expect(at.forge.calls).toContain('listUpdated');
  });

  test('webhooks that say nothing of pull requests make it read lists for at most a fifth of the time', async () => {
    const requests = new SyncRequests(at.clock);
    at.restart({ requests });
    await at.policy();
    await at.poll();
    at.forge.before = (method) => {
      if (method === 'listUpdated') at.clock.advance(500);
    };
    const listsAfter = async (milliseconds: number) => {
      at.forge.calls.length = 0;
      requests.add({ namespace: 'default', name: 'apps' }, undefined);
      await at.poll(milliseconds);
      return at.forge.calls.filter((call) => call === 'listUpdated').length;
    };
    expect(await listsAfter(1000)).toBe(1);
    expect(await listsAfter(1999)).toBe(0);
    // No other message is needed.
    await at.poll(1);
    expect(at.forge.calls).toEqual(['listUpdated']);
  });

  describe('/sluice adopt', () => {
    const say = (number: number, author: string, text: string) => at.forge.comment(number, author, text);

    test('makes drafts at the head of the branch, once, that say where they are from', async () => {
      await at.policy();
      const commit = await at.pull({ 'web/Kptfile': KPTFILE(GATES), 'db/Kptfile': KPTFILE() });
      await at.poll();
      expect(at.comment(1)).toContain('`/sluice adopt`');
      expect(at.comment(1)).toContain('| `its draft, once it is adopted` |');
      say(1, 'Bob', '/sluice adopt\nplease');
      await at.poll();
      const draft = at.world.store.get('apps.web.pr-1');
      expect(draft).toMatchObject({ lifecycle: 'Draft', commit });
      expect(draft.record?.annotations).toEqual({
        'sluice.dev/pull-request': 'https://git.example.com/owner/apps/pulls/1',
        'sluice.dev/pull-request-commit': commit,
      });
      expect(await at.refs()).toEqual(['refs/heads/drafts/db/pr-1', 'refs/heads/drafts/web/pr-1']);
      expect(at.comment(1)).toContain('Adopted as the draft `apps.web.pr-1`.');
      expect(at.comment(1)).toContain('| `its draft apps.web.pr-1` |');
      // Its content is of those who pushed it, and not of the user who adopted it.
      const { record } = await at.world.store.evaluate('apps.web.pr-1');
      expect(record.contributors?.map(({ name }) => name)).toEqual(['push']);
      at.restart();
      await at.poll();
      expect(await at.refs()).toHaveLength(2);
    });

    test.each([
      ['no webhook', false],
      ['a webhook', true],
    ] as const)(
      'counts on a host that reports no edits, and with %s the reply says how certain it is',
      async (_, isShown) => {
        at.forge.reportsEdits = false;
        await at.policy();
        const requests = new SyncRequests(at.clock);
        at.restart({ requests });
        await at.pull({ 'web/Kptfile': KPTFILE() });
        const body = '/sluice adopt';
        const id = say(1, 'bob', body);
        if (isShown) requests.addWritten({ namespace: 'default', name: 'apps' }, { id, author: 'bob', body });
        await at.poll();
        // Its webhook may still arrive.
        expect(await at.refs()).toHaveLength(isShown ? 1 : 0);
        await at.poll();
        expect(await at.refs()).toEqual(['refs/heads/drafts/web/pr-1']);
        const note = 'Set up that webhook, so that only requests as their authors wrote them count (docs/webhooks.md).';
        expect(at.comment(1, 'adopt')?.includes(note)).toBe(!isShown);
      },
    );

    test('a later request that does not count hides none that does', async () => {
      await at.policy();
      await at.pull({ 'web/Kptfile': KPTFILE() });
      say(1, 'bob', '/sluice adopt');
      say(1, 'eve', '/sluice adopt');
      await at.poll();
      expect(await at.refs()).toEqual(['refs/heads/drafts/web/pr-1']);
      expect(at.comment(1, 'adopt')).toContain('adopted as drafts');
    });

    test('counts only for users whom the policy maps and who may create revisions', async () => {
      await at.policy();
      at.restart({ mayCreate: async (user) => user.name !== 'bob@example.com' });
      await at.pull({ 'web/Kptfile': KPTFILE() });
      say(1, 'eve', '/sluice adopt');
      await at.poll();
      expect(at.comment(1, 'adopt')).toContain('does not list eve');
      say(1, 'bob', '/sluice adopt');
      await at.poll();
      expect(at.comment(1, 'adopt')).toContain('may not create packagerevisions');
      expect(await at.refs()).toEqual([]);
      expect(await at.world.events('apps')).toEqual([
        expect.stringContaining('NotAdopted: '),
        expect.stringContaining('NotAdopted: '),
      ]);
    });
  });
});
