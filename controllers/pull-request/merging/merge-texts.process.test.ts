import { beforeEach, describe, expect, test } from 'vitest';
import { hostRepository } from '../../../test/support/delivery-pull-request.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import { eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';
import { protectMain } from '../../../test/support/protected-main.ts';
import { proposeReserved, settleReserved } from './testing-reserved.ts';

describe('the commit of the merge mentions no user and closes no issue', () => {
  const open = eachProposals();
  let at: Proposals;
  let name: string;
  beforeEach(() => {
    at = open();
  });

  async function start(review: Record<string, unknown>): Promise<void> {
    ({ name } = await proposeReserved(at, review));
  }
  const settle = (times?: number) => settleReserved(at, name, times);
  const reviewBy = (author: string) => at.review(1, author, 'approved', at.revision(name).commit);

  const issue = 'https://git.example.com/owner/apps/issues/3';
  const hostile = `Closes #1, fixes owner/apps#2, ${issue}, GH-4 cc @acme/team`;

  async function expectHarmless(): Promise<void> {
    await reviewBy('bob');
    await at.reconcile(name);
    await settle();
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    const message = git(at.path, ['log', '-1', '--format=%B', 'main']);
    expect(message).toContain('approved by bob@example.com');
    expect(message).not.toMatch(/(^|[^A-Za-z0-9_])@/);
    expect(message).not.toMatch(/#\d|gh-\d|:\/\//i);
  }

  test('where the template of the policy names them', async () => {
    await start({ mergeMethod: 'squash', titleTemplate: `$\{workspace}: ${hostile}` });
    await expectHarmless();
  });

  test('where a user has changed the title of the pull request', async () => {
    await start({ mergeMethod: 'squash' });
    at.forge.change(1, { title: `${hostile}\n\n@all` });
    await expectHarmless();
  });

  test('where the branch and the package of a plain push name them', async () => {
    await at.policy({ mergeMethod: 'squash' });
    const files = {
      'fixes-#1/Kptfile':
        'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: fixes\ninfo:\n  description: "Fixes #1 @all"\n',
    };
    git(at.path, ['branch', 'proposed/fixes-#1/@dora', 'main']);
    await at.world.push(at.path, files, 'proposed/fixes-#1/@dora');
    await at.world.store.repository('apps').sync();
    const [pushed] = at.world.store.list({ lifecycle: 'Proposed' });
    name = pushed?.name ?? '';
    protectMain(at.world.store.repository('apps'));
    hostRepository(at.forge, at.path);
    await at.reconcile(name);
    expect(at.forge.pulls[0]?.title).toBe('Publish fixes-＃1 (＠dora)');
    await expectHarmless();
  });
});
