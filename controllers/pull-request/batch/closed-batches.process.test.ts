import { beforeEach, describe, expect, test } from 'vitest';
import { packagePolicyKind } from '../../../src/resource/kinds/sluice/package-policy.ts';
import { ANNA } from '../../../test/support/fixture.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import { BERTA, eachProposals, GATE, type Proposals } from '../../../test/support/proposal-bench.ts';
import { readingsOf } from './testing-batches.ts';

describe('a pull request of several proposals', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(() => {
    at = open();
    at.serveBranches();
  });
  const { branches, headOf, lifecycles } = readingsOf(() => at);
  const close = () => {
    at.forge.closings.set(1, { by: 'bob', comment: 'not now' });
    at.forge.change(1, { state: 'closed', closedAt: new Date(at.clock.now()).toISOString() });
  };

  test('closed by a user: each is rejected with the reason; a new proposal is in a new pull request', async () => {
    await at.policy({ batch: {} });
    const names = await at.proposeAll('api', 'web');
    await at.settle();
    close();
    await at.settle();
    expect(lifecycles(names)).toEqual(['Draft', 'Draft']);
    for (const name of names)
      expect(at.revision(name).record?.steps.at(-1)).toMatchObject({
        action: 'reject',
        reason: expect.stringContaining('was closed by bob: not now'),
      });
    const branch = at.forge.pulls[0]?.head.branch;
    expect(branches()).toBe(branch);
    expect(at.forge.pulls[0]?.body).toContain('Open this pull request again');
    at.clock.advance(1000);
    for (const name of names) await at.world.store.update(name, { action: 'propose' }, BERTA);
    await at.settle();
    expect(at.forge.pulls.map(({ state }) => state)).toEqual(['closed', 'open']);
    expect(branches()).toBe(at.forge.pulls[1]?.head.branch);
    expect(at.forge.pulls[0]?.body).not.toContain('Open this pull request again');
  });

  describe('that a user has closed and opens again', () => {
    async function closed(): Promise<readonly string[]> {
      await at.policy({ batch: {} }, { approval: { forbidSelfApproval: true } });
      const names = await at.proposeAll('api', 'web');
      await at.settle();
      at.forge.review(1, 'bob', 'changes-requested', await headOf(1));
      close();
      await at.settle();
      expect(lifecycles(names)).toEqual(['Draft', 'Draft']);
      return names;
    }

    test.each([
      { what: 'the same process', restarts: false },
      { what: 'another process', restarts: true },
    ])('proposes its packages again, in the name of who had proposed them: $what', async ({ restarts }) => {
      const names = await closed();
      await at.settle(3_600_000);
      if (restarts) at.restart();
      at.forge.change(1, { state: 'open' });
      await at.settle();
      expect(lifecycles(names)).toEqual(['Proposed', 'Proposed']);
      expect(at.forge.pulls.map(({ state }) => state)).toEqual(['open']);
      expect(at.forge.pulls[0]?.body).toContain('### `apps.api.w1`');
      for (const name of names) {
        const step = at.revision(name).record?.steps.at(-1);
        expect(step).toMatchObject({ action: 'propose', by: 'berta', reason: expect.stringContaining('opened again') });
        expect(await at.world.events(name)).toContainEqual(expect.stringMatching(/^PullRequestReopened: /));
      }
      at.forge.skip(3600);
      at.forge.review(1, 'bob', 'approved', await headOf(1));
      await at.settle();
      expect(lifecycles(names)).toEqual(['Published', 'Published']);
      expect(branches()).toBe('');
    });

    test('leaves a package a draft that has changed since, and one that was rejected by itself', async () => {
      await at.policy({ batch: {} });
      const names = await at.proposeAll('api', 'db', 'web');
      await at.settle();
      await at.world.store.update('apps.db.w1', { action: 'reject' }, BERTA);
      close();
      await at.settle();
      const files = new Map([['a.yaml', Buffer.from('kind: A\napiVersion: v1\nmetadata: {name: b}\n')]]);
      await at.world.store.change('apps.web.w1', { files }, ANNA);
      at.forge.change(1, { state: 'open' });
      await at.settle(60_000);
      expect(lifecycles(names)).toEqual(['Proposed', 'Draft', 'Draft']);
      expect(git(at.path, ['ls-tree', '--name-only', await headOf(1)]).split('\n')).not.toContain('web');
    });

    test('proposes the others where one may not be proposed any more, which an Event says', async () => {
      await at.policy({ batch: {} });
      const names = await at.proposeAll('api', 'web');
      await at.settle();
      close();
      await at.settle();
      const gated = { requiredGates: [{ conditionType: GATE }], selector: { packages: ['api'] } };
      await at.world.client.create(packagePolicyKind, { metadata: { name: 'gated' }, spec: gated });
      await expect.poll(() => at.world.policyFor(at.revision('apps.api.w1')).requiredGates).toHaveLength(1);
      at.forge.change(1, { state: 'open' });
      const [db = ''] = await at.proposeAll('db');
      await at.settle(120_000);
      expect(lifecycles([...names, db])).toEqual(['Draft', 'Proposed', 'Proposed']);
      expect(await at.world.events('apps.api.w1')).toContainEqual(
        expect.stringMatching(/^NotProposed: .* was opened again, but: .*example\.com\/Tested/),
      );
      const head = git(at.path, ['ls-tree', '--name-only', await headOf(1)])
        .trim()
        .split('\n');
      expect(head).toEqual(['README.md', 'db', 'web']);
    });

    test('is closed again when none of its packages is as it was; its branch goes after a week', async () => {
      const names = await closed();
      await at.settle(8 * 86_400_000);
      expect(branches()).toBe('');
      expect(at.forge.pulls[0]?.body).not.toContain('Open this pull request again');
      at.forge.change(1, { state: 'open' });
      await at.settle();
      expect(lifecycles(names)).toEqual(['Draft', 'Draft']);
    });
  });
});
