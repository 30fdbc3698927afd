import { beforeEach, describe, expect, test } from 'vitest';
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
    await at.pull(files, { branch: 'other', isFork: true });
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

  describe('/sluice adopt', () => {
    const say = (number: number, author: string, text: string) => at.forge.comment(number, author, text);

    test('makes drafts at the head of the branch, once, that say where they are from', async () => {
      await at.policy();
      const commit = await at.pull({ 'web/Kptfile': KPTFILE(), 'db/Kptfile': KPTFILE() });
      await at.poll();
      expect(at.comment(1)).toContain('`/sluice adopt`');
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
      // Its content is of those who pushed it, and not of the user who adopted it.
      const { record } = await at.world.store.evaluate('apps.web.pr-1');
      expect(record.contributors?.map(({ name }) => name)).toEqual(['push']);
      at.restart();
      await at.poll();
      expect(await at.refs()).toHaveLength(2);
    });

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
