import { beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { packagePolicyKind } from '../../../src/resource/kinds/sluice/package-policy.ts';
import { ANNA } from '../../../test/support/fixture.ts';
import { BERTA, eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';

describe('requests for changes in a pull request', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(() => {
    at = open();
  });

  test('requested changes are a closed gate for every approval, until they are withdrawn', async () => {
    await at.policy({ publishOn: 'approval' });
    const name = await at.propose();
    await at.reconcile(name);
    await at.review(1, 'bob', 'changes-requested', at.revision(name).commit);
    await at.reconcile(name);
    const gates = (await at.world.store.evaluate(name)).gates;
    expect(gates).toEqual([
      expect.objectContaining({ type: 'sluice.dev/Reviewed', state: 'NotTrue', requiredBy: ['policy review'] }),
    ]);
    await expect(at.world.store.update(name, { action: 'approve' }, ANNA)).rejects.toThrow(
      /gate sluice.dev\/Reviewed is closed.*changes requested by bob/,
    );
    const forged = { conditions: [{ type: 'sluice.dev/Reviewed', status: 'True' as const }] };
    await expect(at.world.store.change(name, forged, ANNA)).rejects.toThrow(/permits only controller:pull-request/);
    await expect(at.world.store.change(name, { withdraw: ['sluice.dev/Reviewed'] }, ANNA)).rejects.toThrow(
      /permits only controller:pull-request/,
    );
    await at.reconcile(name);
    expect(at.forge.checksOf(at.revision(name).commit)).toEqual({ 'sluice/ready': 'failure' });
    await at.review(1, 'bob', 'approved', at.revision(name).commit);
    await at.reconcile(name);
    await at.world.store.update(name, { action: 'approve' }, ANNA);
    expect(at.revision(name).lifecycle).toBe('Published');
  });

  describe('requested changes stay', () => {
    /** A proposal whose reviewer requests changes. */
    async function requested(): Promise<string> {
      const name = await at.propose();
      await at.reconcile(name);
      await at.review(1, 'bob', 'changes-requested', at.revision(name).commit);
      await at.reconcile(name);
      return name;
    }
    const approve = (name: string) => at.world.store.update(name, { action: 'approve' }, ANNA);
    const refusal = /gate sluice.dev\/Reviewed is closed/;

    test('whatever a push does with the condition, also while the host does not respond', async () => {
      await at.policy({ publishOn: 'approval' });
      const name = await requested();
      at.forge.before = () => {
        throw new SluiceError('Unavailable', 'status 502');
      };
      const kptfile = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n';
      const forged = `${kptfile}status:\n  conditions:\n    - type: sluice.dev/Reviewed\n      status: "True"\n`;
      for (const text of [kptfile, forged]) {
        await at.world.push(at.path, { 'app/Kptfile': text }, 'proposed/app/w1');
        await at.world.store.repository('apps').sync();
        await at.reconcile(name).catch(() => undefined);
        await expect(approve(name)).rejects.toThrow(refusal);
      }
      expect(await at.world.events(name)).toContain('PullRequestFailed: status 502');
    });

    test('in another pull request of the branch: closed and opened again, edited, or deleted by users', async () => {
      await at.policy({ publishOn: 'approval' });
      const name = await requested();
      at.forge.change(1, { body: 'mine', state: 'closed' });
      await at.reconcile('apps');
      await at.reconcile(name);
      expect(at.forge.pulls).toHaveLength(2);
      await expect(approve(name)).rejects.toThrow(refusal);
      await at.review(2, 'bob', 'approved', at.revision(name).commit);
      await at.reconcile(name);
      await approve(name);
    });

    test('after a rejection and another proposal, until the reviewer decides again', async () => {
      await at.policy({ publishOn: 'approval' });
      const name = await requested();
      await at.world.store.update(name, { action: 'reject' }, ANNA);
      await at.reconcile(name);
      await at.world.store.update(name, { action: 'propose' }, BERTA);
      at.forge.change(1, { state: 'closed' });
      await at.reconcile('apps');
      await at.reconcile(name);
      expect(at.forge.pulls).toHaveLength(2);
      expect(at.revision(name).lifecycle).toBe('Proposed');
      await expect(approve(name)).rejects.toThrow(refusal);
      at.forge.reviewsOf.set(1, []);
      await at.review(2, 'carl', 'approved', at.revision(name).commit);
      await at.reconcile(name);
      await approve(name);
    });

    test('while two policies have a review, and after a push that makes the condition stale', async () => {
      await at.policy({ publishOn: 'approval' });
      const name = await at.propose();
      await at.reconcile(name);
      await at.world.push(
        at.path,
        { 'app/b.yaml': 'kind: B\napiVersion: v1\nmetadata: {name: b}\n' },
        'proposed/app/w1',
      );
      await at.world.store.repository('apps').sync();
      await expect(approve(name)).rejects.toThrow(refusal);
      await at.reconcile(name);
      const { spec } = await at.world.client.get(packagePolicyKind, { name: 'review' });
      await at.world.client.create(packagePolicyKind, { metadata: { name: 'other' }, spec });
      await expect.poll(() => at.world.policyFor(at.world.store.get(name)).reviewProblem).toBeDefined();
      await at.review(1, 'bob', 'changes-requested', at.revision(name).commit);
      await at.world.client.delete(packagePolicyKind, { name: 'other' });
      await expect.poll(() => at.world.policyFor(at.world.store.get(name)).review).toBeDefined();
      await at.reconcile(name);
      await expect(approve(name)).rejects.toThrow(refusal);
    });
  });
});
