import { beforeEach, describe, expect, test } from 'vitest';
import { eachUserPulls, KPTFILE, LABELS, MAP, type UserPullBench } from '../../test/support/user-pull-bench.ts';

describe('user-pull-request controller, rare cases', () => {
  const open = eachUserPulls();
  let at: UserPullBench;
  beforeEach(() => {
    at = open();
  });

  test('mistakes are annotated at their lines: YAML, aliases without end, links, and packages above the limits', async () => {
    await at.policy();
    let bomb = 'kind: A\na: &a [x,x,x,x,x,x,x,x,x,x]\n';
    for (const [name, of] of ['ba', 'cb', 'dc', 'ed', 'fe', 'gf', 'hg', 'ih'].map((pair) => [...pair]))
      bomb += `${name}: &${name} [${Array.from({ length: 10 }, () => `*${of}`).join(',')}]\n`;
    const commit = await at.pull({
      'a/Kptfile': KPTFILE(LABELS),
      'a/bad.yaml': 'a: 1\nb: [\n',
      'b/Kptfile': KPTFILE(LABELS),
      'b/bomb.yaml': bomb,
      'c/Kptfile': KPTFILE(),
      'c/huge.bin': 'x'.repeat(8 * 1024 * 1024),
    });
    await at.poll();
    const ready = at.forge.checks.get(commit)?.get('sluice/ready');
    expect(ready?.state).toBe('failure');
    expect(
      ready?.annotations
        ?.filter(({ level }) => level === 'failure')
        .map(({ path: at, line, title }) => `${at}:${line} ${title}`),
    ).toEqual(['a/bad.yaml:2 InvalidYaml', 'b/bomb.yaml:3 InvalidYaml', 'c/huge.bin:1 TooLarge']);
  });

  test('many packages are bounded, and what is left out fails the check', async () => {
    await at.policy();
    const files = Object.fromEntries(Array.from({ length: 25 }, (_, at) => [`p${at}/Kptfile`, KPTFILE()]));
    const commit = await at.pull(files);
    await at.poll();
    expect(at.titles(commit)['sluice/ready']).toBe(
      'failure: It changes 25 packages, of which 5 are not checked; split it',
    );
    expect(at.comment(1)).toContain('**`It changes 25 packages, of which 5 are not checked; split it`**');
  });

  test('judges the merge with the main branch, again when its packages move there, and names what both changed', async () => {
    await at.policy();
    await at.world.push(at.path, { 'web/Kptfile': KPTFILE(), 'web/a.yaml': MAP });
    await at.world.store.repository('apps').refresh();
    const commit = await at.pull({ 'web/b.yaml': MAP });
    await at.poll();
    expect(at.titles(commit)['sluice/ready']).toMatch(/^success/);
    await at.world.push(at.path, { 'web/c.yaml': 'a: [' });
    await at.world.store.repository('apps').refresh();
    await at.poll();
    // The mistake is that of the main branch, and the package cannot be rendered with it only where it has a pipeline.
    expect(at.titles(commit)['sluice/ready']).toMatch(/^success/);
    await at.world.push(at.path, { 'web/b.yaml': 'kind: Other\n' });
    await at.world.store.repository('apps').refresh();
    await at.poll();
    expect(at.titles(commit)['sluice/ready']).toMatch(
      /^failure: 1 error: web\/b\.yaml:1: the main branch has changed it too/,
    );
  });

  test('hostile texts are shown as code, in bounded length', async () => {
    await at.policy();
    const evil = '<img src=x> @everyone ```\n[x](http://evil)\u001b[31m|';
    const commit = await at.pull({
      'web/Kptfile': KPTFILE(`info:\n  readinessGates:\n    - conditionType: ${JSON.stringify(evil)}\n`),
      'web/a.yaml': `# ${'`'.repeat(10)}\n${MAP}`,
    });
    await at.poll();
    expect(at.titles(commit)['sluice/ready']).not.toContain('\u001b');
    const text = at.comment(1) ?? '';
    expect(text).not.toContain('\u001b');
    expect(text).toMatch(/\| `<img src=x> @everyone ˋˋˋ \[x\]\(http:\/\/evil\)[^`]*` \|/);
    expect(text).toMatch(/^`{11}diff$/m);
  });

  describe('/sluice adopt', () => {
    const say = (number: number, author: string, text: string) => at.forge.comment(number, author, text);

    test('of a fork needs the whole commit that its author has seen', async () => {
      await at.policy();
      const commit = await at.pull({ 'web/Kptfile': KPTFILE() }, { isFork: true });
      say(1, 'bob', '/sluice adopt');
      await at.poll();
      expect(at.comment(1, 'adopt')).toContain(`name the whole commit: /sluice adopt ${commit}`);
      say(1, 'bob', '/sluice adopt 0123456789012345678901234567890123456789');
      await at.poll();
      expect(at.comment(1, 'adopt')).toContain('and not at 0123456789');
      // Its author can have made another commit that begins with the same digits.
      say(1, 'bob', `/sluice adopt ${commit.slice(0, 12)}`);
      await at.poll();
      expect(at.comment(1, 'adopt')).toContain('name the whole commit');
      expect(await at.refs()).toEqual([]);
      say(1, 'bob', ` /Sluice adopt ${commit.toUpperCase()}`);
      await at.poll();
      expect(await at.refs()).toEqual(['refs/heads/drafts/web/pr-1']);
    });

    test('in a comment that was edited does not count, also within the second in which it was written', async () => {
      await at.policy();
      await at.pull({ 'web/Kptfile': KPTFILE() });
      const id = say(1, 'bob', 'What is this?');
      await at.poll();
      const comments = at.forge.commentsOf.get(1) ?? [];
      // The time of the host stays the same.
      at.forge.commentsOf.set(
        1,
        comments.map((one) => (one.id === id ? { ...one, body: '/sluice adopt' } : one)),
      );
      at.forge.change(1, {});
      await at.poll();
      expect(await at.refs()).toEqual([]);
      say(1, 'bob', '/sluice adopt');
      await at.poll();
      expect(await at.refs()).toEqual(['refs/heads/drafts/web/pr-1']);
    });

    test('lets the packages be checked again where merges publish', async () => {
      await at.policy({ publishOn: 'merge' });
      const commit = await at.pull({ 'web/Kptfile': KPTFILE() });
      say(1, 'bob', '/sluice adopt');
      await at.poll();
      expect(await at.refs()).toEqual(['refs/heads/drafts/web/pr-1']);
      at.forge.change(1, {});
      await at.poll();
      expect(at.titles(commit)['sluice/ready']).toMatch(/^success: 1 package checked/);
    });

    test('by the policy, for branches of the repository alone', async () => {
      await at.policy({ userPullRequests: 'adopt' });
      await at.pull({ 'web/Kptfile': KPTFILE() });
      await at.pull({ 'db/Kptfile': KPTFILE() }, { branch: 'other', isFork: true });
      await at.poll();
      expect(await at.refs()).toEqual(['refs/heads/drafts/web/pr-1']);
    });
  });
});
