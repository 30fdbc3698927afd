import { beforeEach, describe, expect, test } from 'vitest';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { eachProposals, type Proposals } from '../../test/support/proposal-bench.ts';

describe('what Sluice writes into an own pull request', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(() => {
    at = open();
  });

  test('without a policy its check is pending, the text and an event say why, and a new policy reviews it again', async () => {
    await at.policy();
    const name = await at.propose();
    await at.reconcile(name);
    const ready = () => at.forge.checks.get(at.revision(name).commit)?.get('sluice/ready');
    expect(ready()?.state).toBe('success');
    await at.world.client.delete(packagePolicyKind, { namespace: 'default', name: 'review' });
    await expect.poll(() => at.world.policyFor(at.revision(name)).review).toBeUndefined();
    await at.reconcile(name);
    expect(ready()).toMatchObject({ state: 'pending', title: expect.stringMatching(/a merge publishes nothing$/) });
    expect(at.forge.pulls[0]?.body).toMatch(/No policy .* selects it any more: .* publish nothing/);
    expect((await at.world.events(name)).at(-1)).toMatch(/^NotReviewed: .*\/1 is not reviewed any more/);
    await at.policy();
    await at.reconcile(name);
    expect(ready()?.state).toBe('success');
    expect(at.forge.pulls.map(({ state }) => state)).toEqual(['open']);
    expect(at.forge.pulls[0]?.body).not.toContain('any more');
  });

  test('what a user changes in the section of Sluice is written again, each time, and nothing else', async () => {
    await at.policy();
    const name = await at.propose();
    await at.reconcile(name);
    const body = () => at.forge.pulls[0]?.body ?? '';
    const own = body();
    const events = await at.world.events(name);
    const edits = [
      own.replace('Package revision', 'All gates are open'),
      '',
      own.replace(/proposal=\w+/, 'proposal=0123456789abcdef'),
    ];
    for (const edited of [...edits, ...edits]) {
      at.forge.change(1, { body: `by a user\n\n${edited}` });
      at.forge.calls.length = 0;
      for (let turn = 0; turn < 3; turn += 1) {
        await at.reconcile('apps');
        await at.reconcile(name);
      }
      expect(body()).toBe(`by a user\n\n${own}`);
      expect(at.forge.calls.filter((call) => call === 'update')).toHaveLength(1);
    }
    expect(await at.world.events(name)).toEqual(events);
  });
});
