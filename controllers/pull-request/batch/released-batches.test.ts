import { beforeEach, describe, expect, test } from 'vitest';
import { type PackagePolicy, packagePolicyKind } from '../../../src/resource/kinds/sluice/package-policy.ts';
import { eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';

describe('the check of a shared pull request', () => {
  const open = eachProposals();
  let at: Proposals;
  let names: readonly string[];
  let spec: PackagePolicy['spec'];
  beforeEach(async () => {
    at = open();
    at.serveBranches();
    await at.policy({ publishOn: 'merge', batch: {} });
    ({ spec } = await at.world.client.get(packagePolicyKind, { namespace: 'default', name: 'review' }));
    names = await at.proposeAll('web', 'db');
    await at.settle(60_000);
    expect(await ready()).toMatchObject({ state: 'success' });
  });
  const ready = async () => at.forge.checks.get((await at.forge.get(1)).head.commit)?.get('sluice/ready');
  const policyOf = (name = '') => at.world.policyFor(at.revision(name));
  /** Changes policies, and has the proposals looked at once the change is read. */
  async function change(policies: Promise<unknown>, isRead: () => boolean): Promise<void> {
    await policies;
    await expect.poll(isRead).toBe(true);
    await at.settle(120_000);
  }
  const remove = (name: string) => at.world.client.delete(packagePolicyKind, { namespace: 'default', name });
  async function addPolicy(name: string, more: Partial<PackagePolicy['spec']> = {}): Promise<unknown> {
    return at.world.client.create(packagePolicyKind, { metadata: { name }, spec: { ...spec, ...more } });
  }
  async function expectReady(): Promise<void> {
    expect(await ready()).toMatchObject({ state: 'success' });
    expect(at.forge.pulls).toMatchObject([{ state: 'open' }]);
  }

  test('is pending once no policy reviews its packages, which events report', async () => {
    await change(remove('review'), () => policyOf(names[0]).review === undefined);
    expect(await ready()).toMatchObject({
      state: 'pending',
      title: expect.stringContaining('a merge publishes nothing'),
    });
    for (const name of names) expect((await at.world.events(name)).at(-1)).toMatch(/^NotReviewed: .*pulls.1 is not/);
    await change(addPolicy('review'), () => policyOf(names[0]).review !== undefined);
    await expectReady();
  });

  test('is pending while a second policy reviews its packages, of which the text stays', async () => {
    const { body } = await at.forge.get(1);
    await change(addPolicy('second'), () => policyOf(names[0]).reviewProblem !== undefined);
    expect(await ready()).toMatchObject({ state: 'pending', title: expect.stringContaining('second') });
    expect((await at.forge.get(1)).body).toBe(body);
    at.forge.calls.length = 0;
    await at.settle(120_000);
    expect(at.forge.calls).not.toContain('setChecks');
    await change(remove('second'), () => policyOf(names[0]).reviewProblem === undefined);
    await expectReady();
  });

  test('is that of the others once one package has no policy', async () => {
    const [web = '', db = ''] = names;
    await change(
      addPolicy('second', { selector: { packages: ['db'] } }),
      () => policyOf(db).reviewProblem !== undefined,
    );
    expect(policyOf(web).reviewProblem).toBeUndefined();
    expect(await ready()).toMatchObject({ state: 'success', title: 'Its package is ready' });
    const { body } = await at.forge.get(1);
    expect(body).toContain(web);
    expect(body).not.toContain(db);
    expect(at.revision(db).lifecycle).toBe('Proposed');
  });
});
