import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { PullRequest } from '../../../src/forge/forge.ts';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { freezeKind } from '../../../src/resource/kinds/sluice/freeze.ts';
import { packagePolicyKind } from '../../../src/resource/kinds/sluice/package-policy.ts';
import { ANNA } from '../../../test/support/fixture.ts';
import { mergeOnHost } from '../../../test/support/git/merge-on-host.ts';
import { BERTA, eachProposals, GATE, type Proposals } from '../../../test/support/proposal-bench.ts';
import { SyncRequests } from '../../repository/sync-requests.ts';

describe('merges of pull requests', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(() => {
    at = open();
  });

  test('a merge on the host is reported, and publishes nothing', async () => {
    await at.policy();
    const name = await at.propose();
    await at.reconcile(name);
    at.forge.change(1, { state: 'merged', merged: { commit: at.revision(name).commit, by: 'bob' } });
    await at.reconcile('apps');
    await at.reconcile(name);
    expect(at.revision(name).lifecycle).toBe('Proposed');
    expect((await at.world.events(name)).at(-1)).toMatch(
      /^MergedOutside: .* was merged by bob on the host, which publishes nothing/,
    );
    expect(at.forge.pulls).toHaveLength(1);
  });

  test('a merge from while the key of the server did not count is published once it counts again', async () => {
    await at.policy({ publishOn: 'merge' });
    const name = await at.propose();
    await at.reconcile(name);
    await at.mergeHead(name, 'bob');
    const { trust } = at.world.store.repository('apps');
    const untrusted = vi.spyOn(trust, 'expectOwnKey').mockImplementation(() => {
      throw new SluiceError('Refused', 'the signing key of this server is not one that the repository trusts');
    });
    await at.readMerge(name);
    await at.settle(120_000);
    expect(at.revision(name).lifecycle).toBe('Proposed');
    expect((await at.world.events(name)).at(-1)).toMatch(/^MergeNotPublished: .*the signing key of this server/);
    untrusted.mockRestore();
    await at.settle(120_000);
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  });

  test('a merge from before the policy let merges publish stays what it was, and a later one publishes', async () => {
    await at.policy({ publishOn: 'approval' });
    const name = await at.propose();
    await at.reconcile(name);
    const merge = async (number: number) => {
      const { files } = await at.world.store.content(name);
      const squashed = Object.fromEntries([...files].map(([file, data]) => [`app/${file}`, data.toString('utf8')]));
      await at.world.push(at.path, { 'other.yaml': `a: ${number}` });
      const commit = await at.world.push(at.path, squashed);
      at.forge.change(number, { state: 'merged', merged: { commit, by: 'bob' } });
      await at.world.store.repository('apps').sync();
      await at.reconcile('apps');
    };
    await merge(1);
    const key = { namespace: 'default', name: 'review' };
    await at.world.client.patch(packagePolicyKind, key, { spec: { review: { publishOn: 'merge' } } });
    await expect.poll(() => at.world.policyFor(at.revision(name)).review?.publishOn).toBe('merge');
    for (let turn = 0; turn < 2; turn += 1) {
      await at.reconcile(name);
      at.restart();
    }
    expect(at.revision(name).lifecycle).toBe('Proposed');
    expect((await at.world.events(name)).at(-1)).toMatch(/^MergedOutside: /);
    // A user proposes it again.
    await at.world.store.update(name, { action: 'reject' }, ANNA);
    at.clock.advance(60_000);
    await at.world.store.update(name, { action: 'propose' }, BERTA);
    await at.reconcile(name);
    await merge(2);
    await at.reconcile(name);
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  });

  describe('with publishOn: merge', () => {
    /** The host merges the proposal as a squash; returns the commit. */
    async function merge(name: string, by: string): Promise<string> {
      const { files } = await at.world.store.content(name);
      const squashed = Object.fromEntries([...files].map(([file, data]) => [`app/${file}`, data.toString('utf8')]));
      const commit = await at.world.push(at.path, squashed);
      at.forge.change(1, { state: 'merged', merged: { commit, by } });
      return commit;
    }

    test('one that was made in a freeze is out of band, also when the freeze ends before it is read', async () => {
      await at.policy({ publishOn: 'merge' });
      const name = await at.propose();
      await at.reconcile(name);
      const key = { namespace: 'default', name: 'core' };
      const freezes = () => at.world.policyFor(at.revision(name)).freezes;
      await at.world.client.create(freezeKind, { metadata: key, spec: { reason: 'repair' } });
      await expect.poll(freezes).toHaveLength(1);
      at.clock.advance(1000);
      await merge(name, 'bob');
      at.forge.change(1, { closedAt: new Date(at.clock.now()).toISOString() });
      at.clock.advance(1000);
      await at.world.client.delete(freezeKind, key);
      await expect.poll(freezes).toMatchObject([{ until: at.clock.now() }]);
      await at.world.store.repository('apps').sync();
      await at.reconcile('apps');
      await at.reconcile(name);
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: { reason: 'NotApproved' } });
      expect((await at.world.events(name)).at(-1)).toMatch(/^OutOfBand: .* frozen by Freeze default\/core/);
    });

    test('for a quorum of two, an approval through Sluice and the merge of another mapped user publish', async () => {
      await at.policy({ publishOn: 'merge' }, { approval: { quorum: { required: 2 } } });
      const name = await at.propose();
      await at.reconcile(name);
      const carl = { actor: { name: 'carl@example.com' }, face: 'api' } as const;
      await at.world.store.update(name, { action: 'approve' }, carl);
      expect(at.revision(name).lifecycle).toBe('Proposed');
      await at.reconcile(name);
      await merge(name, 'bob');
      await at.world.store.repository('apps').sync();
      await at.reconcile('apps');
      await at.reconcile(name);
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    });

    test('the merge is the publication, in the name of the mapped user', async () => {
      await at.policy({ publishOn: 'merge' });
      const name = await at.propose();
      await at.reconcile(name);
      expect(at.forge.pulls[0]?.body).toContain('A merge publishes it, if all gates are open');
      const commit = await merge(name, 'BOB');
      await at.world.store.repository('apps').sync();
      await at.reconcile('apps');
      await at.reconcile(name);
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', revision: 1, commit, outOfBand: undefined });
      expect((await at.world.events(name)).at(-1)).toBe(
        `Approved: published at ${commit}: ${at.forge.pulls[0]?.url} was merged by BOB`,
      );
      await at.reconcile(name);
      expect(at.forge.pulls[0]?.body).toContain('is Published now. Last step: `approve` by `bob@example.com`');
    });

    test('a merge that bypassed a closed gate is out of band, and reported', async () => {
      await at.policy({ publishOn: 'merge' }, { requiredGates: [{ conditionType: GATE, approveOnly: true }] });
      const name = await at.propose();
      await at.reconcile(name);
      const commit = await merge(name, 'bob');
      await at.world.store.repository('apps').sync();
      at.restart();
      await at.reconcile(name);
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', commit, outOfBand: { reason: 'GateUnmet' } });
      expect((await at.world.events(name)).at(-1)).toMatch(
        /^OutOfBand: .* was merged by bob although it could not be published, so that it is out of band and is not delivered: .*gate example.com\/Tested is closed/,
      );
    });

    test('changes that were requested before the merge, and not read yet, are a bypass; later ones are not', async () => {
      await at.policy({ publishOn: 'merge' });
      const name = await at.propose();
      await at.reconcile(name);
      at.forge.review(1, 'carl', 'changes-requested', at.revision(name).commit);
      const commit = await merge(name, 'bob');
      await at.world.store.repository('apps').sync();
      await at.reconcile('apps');
      await at.reconcile(name);
      expect(at.revision(name)).toMatchObject({
        ...{ lifecycle: 'Published', commit },
        outOfBand: { reason: 'ChangesRequested', message: expect.stringMatching(/by carl \(https:/) },
      });
      expect((await at.world.events(name)).at(-1)).toMatch(
        /^OutOfBand: .*although changes were requested by carl \(https:/,
      );
    });

    test.each(['before', 'after'])(
      'changes that were requested before the merge, and dismissed %s it',
      async (when) => {
        await at.policy({ publishOn: 'merge' });
        const name = await at.propose();
        await at.reconcile(name);
        at.forge.review(1, 'carl', 'changes-requested', at.revision(name).commit);
        if (when === 'before') at.forge.dismiss(1, '1');
        await at.mergeHead(name, 'bob');
        at.forge.skip(1);
        if (when === 'after') at.forge.dismiss(1, '1');
        await at.readMerge(name);
        const outOfBand = when === 'before' ? undefined : { reason: 'ChangesRequested' };
        expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand });
      },
    );

    test('changes that are requested after the merge bypass nothing', async () => {
      await at.policy({ publishOn: 'merge' });
      const name = await at.propose();
      await at.reconcile(name);
      await merge(name, 'bob');
      at.forge.change(1, { closedAt: at.forge.pulls[0]?.updatedAt ?? '' });
      at.forge.review(1, 'carl', 'changes-requested', at.revision(name).commit);
      await at.world.store.repository('apps').sync();
      await at.reconcile('apps');
      await at.reconcile(name);
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    });

    test('a condition that is set after the merge, which moves the branch on, changes nothing; a gate that is added does', async () => {
      await at.policy({ publishOn: 'merge' });
      const name = await at.propose();
      await at.reconcile(name);
      const commit = await at.mergeHead(name, 'bob');
      await at.set(name, 'True');
      await at.readMerge(name);
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', commit, outOfBand: undefined });

      const { name: next } = await at.world.draft('apps/web/w1');
      await at.world.store.update(next, { action: 'propose' }, BERTA);
      await at.reconcile(next);
      await at.mergeHead(next, 'bob', 'squash', 2);
      await at.world.store.change(next, { kptfile: [{ op: 'addGate', conditionType: GATE }] }, ANNA);
      await at.readMerge(next);
      expect(at.revision(next).lifecycle).toBe('Proposed');
    });

    test('a merge by a user who may not approve is out of band where policies require another user', async () => {
      await at.policy({ publishOn: 'merge' }, { approval: { forbidSelfApproval: true } });
      at.restart({ mayApprove: async () => false });
      const name = await at.propose();
      await at.reconcile(name);
      await merge(name, 'bob');
      await at.world.store.repository('apps').sync();
      await at.reconcile('apps');
      await at.reconcile(name);
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: { reason: 'NotApproved' } });
    });

    test('a merge is out of band if no mapped user who stands behind it may approve, and says how to grant that', async () => {
      await at.policy({ publishOn: 'merge' });
      at.restart({ mayApprove: async () => false });
      const name = await at.propose();
      await at.reconcile(name);
      at.forge.review(1, 'carl', 'approved', at.revision(name).commit);
      await merge(name, 'bob');
      await at.world.store.repository('apps').sync();
      await at.reconcile('apps');
      await at.reconcile(name);
      const message = expect.stringMatching(
        /User "bob@example.com", "carl@example.com" may not update packagerevisions\/approval in this namespace; grant that right, as the ClusterRole sluice:approver has it/,
      );
      expect(at.revision(name)).toMatchObject({
        lifecycle: 'Published',
        outOfBand: { reason: 'NotApproved', message },
      });
      expect((await at.world.events(name)).at(-1)).toEqual(message);
    });

    test('a merge by a mapped user who may not approve is published by the review of another one who may', async () => {
      await at.policy({ publishOn: 'merge' });
      at.restart({ mayApprove: async (user) => user.name === 'carl@example.com' });
      const name = await at.propose();
      await at.reconcile(name);
      at.forge.review(1, 'carl', 'approved', at.revision(name).commit);
      await merge(name, 'bob');
      await at.world.store.repository('apps').sync();
      await at.reconcile('apps');
      await at.reconcile(name);
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    });

    test('a merge that is not read yet requests a sync, and is published after it; so is one whose response was lost', async () => {
      await at.policy({ publishOn: 'merge' });
      const requests = new SyncRequests(at.clock);
      at.restart({ requests });
      const name = await at.propose();
      await at.reconcile(name);
      await merge(name, 'bob');
      await at.reconcile('apps');
      expect(await at.reconcile(name)).toMatchObject({ requeueAfter: 10_000 });
      expect(requests.has({ namespace: 'default', name: 'apps' })).toBe(true);
      expect(at.revision(name).lifecycle).toBe('Proposed');
      await at.world.store.repository('apps').sync();
      at.restart({
        store: {
          change: (...args) => at.world.store.change(...args),
          evaluate: (...args) => at.world.store.evaluate(...args),
          find: (...args) => at.world.store.find(...args),
          list: (...args) => at.world.store.list(...args),
          repositoryOf: (...args) => at.world.store.repositoryOf(...args),
          findRepository: (...args) => at.world.store.findRepository(...args),
          repositories: (...args) => at.world.store.repositories(...args),
          onArrival: (...args) => at.world.store.onArrival(...args),
          onPromotion: (...args) => at.world.store.onPromotion(...args),
          update: async (...args) => {
            await at.world.store.update(...args);
            throw new SluiceError('Unavailable', 'the connection was lost');
          },
        },
      });
      await expect(at.reconcile(name)).rejects.toThrow('the connection was lost');
      at.restart();
      await at.reconcile(name);
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', revision: 1, outOfBand: undefined });
    });

    describe('one that cannot be published', () => {
      let name: string;
      let requests: SyncRequests;
      beforeEach(async () => {
        await at.policy({ publishOn: 'merge' });
        name = await at.propose();
        requests = new SyncRequests(at.clock);
        at.restart({ requests });
        await at.settle();
      });
      const syncsWithin = async (milliseconds: number) => {
        const add = vi.spyOn(requests, 'add');
        at.forge.calls.length = 0;
        await at.settle(milliseconds);
        const syncs = add.mock.calls.length;
        add.mockRestore();
        return { syncs, reads: at.forge.calls.filter((call) => call === 'get').length };
      };

      test('whose commit does not arrive is looked for ever more seldom, reported after a minute, and published once it is there', async () => {
        const { branch } = at.forge.pulls[0]?.head ?? { branch: '' };
        const { commit } = mergeOnHost(at.path, at.revision(name).commit, 'squash', 1);
        const head = { branch, commit: at.revision(name).commit, isSameRepository: true };
        at.forge.change(1, { state: 'merged', head, merged: { commit: 'f'.repeat(40), by: 'bob' } });
        await at.settle(50_000);
        expect(await at.world.events(name)).not.toContainEqual(expect.stringMatching(/^MergeNotPublished/));
        await at.settle(50_000);
        expect((await at.world.events(name)).at(-1)).toMatch(
          /^MergeNotPublished: .*its commit `f{40}` does not arrive in the repository apps/,
        );
        const { syncs, reads } = await syncsWithin(3_600_000);
        expect(syncs).toBeLessThan(12);
        expect(reads).toBeLessThan(12);
        at.forge.pulls[0] = { ...(at.forge.pulls[0] as PullRequest), merged: { commit, by: 'bob' } };
        at.woken.length = 0;
        await at.sync();
        await expect.poll(() => at.woken).toContain(name);
        await at.reconcile(name);
        expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', commit, outOfBand: undefined });
      });

      test('with another package than the proposed one is looked at ever more seldom', async () => {
        const commit = await at.world.push(at.path, {
          'app/Kptfile': 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: app}\n',
        });
        at.forge.change(1, { state: 'merged', merged: { commit, by: 'bob' } });
        await at.world.store.repository('apps').sync();
        await at.settle(60_000);
        const { syncs, reads } = await syncsWithin(3_600_000);
        expect(syncs).toBeLessThan(12);
        expect(reads).toBeLessThan(12);
      });
    });

    test('what was merged is not what was proposed: nothing is published', async () => {
      await at.policy({ publishOn: 'merge' });
      const name = await at.propose();
      await at.reconcile(name);
      const commit = await at.world.push(at.path, {
        'app/Kptfile': 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: app}\n',
      });
      at.forge.change(1, { state: 'merged', merged: { commit, by: 'bob' } });
      await at.world.store.repository('apps').sync();
      await at.reconcile('apps');
      await at.reconcile(name);
      expect(at.revision(name).lifecycle).toBe('Proposed');
      expect((await at.world.events(name)).at(-1)).toMatch(/^MergeNotPublished: .*its package is not the proposed one/);
    });
  });
});
