import { beforeEach, describe, expect, test } from 'vitest';
import type { PackageRevision } from '../../../src/package/model/revision/package-revision.ts';
import { packageVariantKind } from '../../../src/resource/kinds/porch/package-variant.ts';
import { ANNA } from '../../../test/support/fixture.ts';
import { BERTA, eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';
import { supersedingOf } from './supersede.ts';
import { supersededProposals } from './superseded-proposals.ts';

const MALLORY = { ...ANNA, actor: { name: 'mallory' } };
const OWNER = { apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'PackageVariant', name: 'edge', controller: true };

describe('superseded proposals', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(async () => {
    at = open();
    const { name } = await at.world.draft('apps/app/w0');
    await at.world.publish(name);
    await at.policy();
  });

  /** Proposes another workspace of the package, a minute later. */
  async function proposeLater(workspace: string, proposer = BERTA): Promise<string> {
    at.clock.advance(60_000);
    const source = { type: 'copy', source: 'apps.app.w0' } as const;
    const { name } = await at.world.store.create('apps', { package: 'app', workspace, source }, ANNA);
    const files = new Map([
      [
        'a.yaml',
        Buffer.from(`kind: A
apiVersion: v1
metadata: {name: ${workspace}}
`),
      ],
    ]);
    await at.world.store.change(name, { files }, ANNA);
    await at.world.store.update(name, { action: 'propose' }, proposer);
    return name;
  }

  const own = (name: string, uid: string) =>
    at.world.store.change(name, { metadata: { ownerReferences: [{ ...OWNER, uid }] } }, ANNA);
  const comments = (number: number) => (at.forge.commentsOf.get(number) ?? []).map(({ body }) => body);

  test('what was published since from a later workspace ends a proposal with a link, which is no rejection by a reviewer', async () => {
    const first = await proposeLater('w1');
    await at.reconcile(first);
    const second = await proposeLater('w2');
    await at.reconcile(second);
    expect(at.woken).toContain(first);
    await at.reconcile(first);
    expect(at.revision(first).lifecycle).toBe('Proposed');
    at.clock.advance(60_000);
    await at.world.store.update(second, { action: 'approve' }, ANNA);
    await at.reconcile(second);
    await at.reconcile(first);
    const [pull, next] = at.forge.pulls;
    expect(at.revision(first).lifecycle).toBe('Draft');
    expect(comments(1)).toEqual([
      expect.stringContaining(`Superseded by package revision \`${second}\`, which was published as v2: ${next?.url}`),
    ]);
    const steps = at.revision(first).record?.steps ?? [];
    expect(steps.at(-1)).toMatchObject({
      ...{ action: 'reject', by: 'controller:pull-request' },
      reason: `superseded by ${second}, which was published as v2: ${next?.url}`,
    });
    await at.reconcile(first);
    expect(at.forge.pulls[0]?.body).toContain(`Package revision \`${first}\` is Draft now.`);
    expect(pull?.number).toBe(1);
    expect(await at.world.events(first)).toContain(
      `Superseded: superseded by ${second}, which was published as v2: ${next?.url}`,
    );

    // A user who proposes it again has decided so.
    at.clock.advance(60_000);
    await at.world.store.update(first, { action: 'propose' }, BERTA);
    for (let turn = 0; turn < 2; turn += 1) await at.reconcile(first);
    expect(at.revision(first).lifecycle).toBe('Proposed');
  });

  test('an earlier workspace that is published supersedes nothing', async () => {
    const first = await proposeLater('w1');
    const second = await proposeLater('w2');
    await at.reconcile(first);
    at.clock.advance(60_000);
    await at.world.store.update(first, { action: 'approve' }, ANNA);
    await at.reconcile(second);
    expect(at.revision(second).lifecycle).toBe('Proposed');
    expect(comments(1)).toEqual([]);
  });

  test('a proposal of the same controller supersedes the earlier one once it has a pull request, and others do not', async () => {
    const first = await proposeLater('w1');
    await own(first, 'uid-1');
    await at.reconcile(first);
    const other = await proposeLater('w2');
    await own(other, 'uid-2');
    await at.reconcile(other);
    const second = await proposeLater('w3');
    await own(second, 'uid-1');
    await at.reconcile(first);
    expect(at.revision(first).lifecycle).toBe('Proposed');
    at.woken.length = 0;
    await at.reconcile(second);
    expect(at.woken).toContain(first);
    await at.reconcile(first);
    expect(at.revision(first).lifecycle).toBe('Draft');
    const url = at.forge.pulls[2]?.url;
    expect(comments(1)).toEqual([expect.stringContaining(`\`${second}\`, which was proposed after it: ${url}`)]);
    for (const name of [other, second]) {
      await at.reconcile(name);
      expect(at.revision(name).lifecycle).toBe('Proposed');
    }
  });

  test('an owner that a user has forged supersedes nothing, and the variant itself does', async () => {
    const spec = {
      upstream: { repo: 'apps', package: 'base', revision: 1 },
      downstream: { repo: 'apps', package: 'app' },
    };
    const variant = await at.world.client.create(packageVariantKind, { metadata: { name: 'edge' }, spec });
    const uid = variant.metadata.uid ?? '';
    const first = await proposeLater('w1');
    await own(first, uid);
    await at.reconcile(first);
    const second = await proposeLater('w2', MALLORY);
    await own(second, uid);
    const targets = async (...names: string[]) => {
      const read = await at.world.client.get(packageVariantKind, { namespace: 'default', name: 'edge' });
      const downstreamTargets = names.map((name) => ({ name }));
      await at.world.client.updateStatus(packageVariantKind, { ...read, status: { downstreamTargets } });
      for (const name of [second, first, first]) await at.reconcile(name);
    };
    await targets(first);
    expect(at.revision(first).lifecycle).toBe('Proposed');
    expect(comments(1)).toEqual([]);
    await targets(second);
    expect(at.revision(first).lifecycle).toBe('Draft');
  });

  test('a publication and a change of the package on the main branch wake for the proposals of the package', async () => {
    const first = await proposeLater('w1');
    const second = await proposeLater('w2');
    const other = await at.world.draft('apps/other/w1');
    let handle: (event: object) => void = () => undefined;
    const woken: string[] = [];
    const informer = () => ({
      addHandler: (handler: typeof handle) => {
        handle = handler;
      },
    });
    const enqueue = ({ name }: { readonly name: string }) => void woken.push(name);
    supersededProposals(at.world.store).start({ informer, enqueue } as never);
    const changed = (name: string, from: string, to: string, more: object = {}) => {
      const packageName = name === other.name ? 'other' : 'app';
      const spec = { repository: 'apps', packageName, lifecycle: to, ...more };
      const object = { metadata: { namespace: 'default', name }, spec };
      handle({ type: 'update', old: { spec: { lifecycle: from } }, object });
    };
    changed(second, 'Draft', 'Proposed');
    changed(second, 'Published', 'Published');
    changed(other.name, 'Proposed', 'Published');
    expect(woken).toEqual([]);
    changed(second, 'Proposed', 'Published');
    expect(woken).toEqual([first]);
    changed('apps.app.main', 'Published', 'Published', { revision: -1 });
    expect(woken).toEqual([first, first, second]);
  });

  test('an end of the process between the comment and the rejection loses nothing and doubles nothing', async () => {
    const first = await proposeLater('w1');
    await at.reconcile(first);
    const second = await proposeLater('w2');
    await at.reconcile(second);
    at.clock.advance(60_000);
    await at.world.store.update(second, { action: 'approve' }, ANNA);
    at.forge.after = (method) => {
      if (method === 'setComment') throw new Error('the process ends');
    };
    await expect(at.reconcile(first)).rejects.toThrow('the process ends');
    expect(at.revision(first).lifecycle).toBe('Proposed');
    at.forge.after = () => undefined;
    at.restart();
    await at.reconcile(first);
    expect(at.revision(first).lifecycle).toBe('Draft');
    expect(comments(1)).toHaveLength(1);
  });

  test('what a user decided in the pull request before counts', async () => {
    const first = await proposeLater('w1');
    await at.reconcile(first);
    const second = await proposeLater('w2');
    await at.reconcile(second);
    at.clock.advance(60_000);
    await at.world.store.update(second, { action: 'approve' }, ANNA);
    at.forge.change(1, { state: 'closed', closedAt: '2030-01-01T00:00:00Z' });
    at.forge.closings.set(1, { by: 'bob', comment: 'no' });
    await at.reconcile('apps');
    await at.reconcile(first);
    expect(at.revision(first).record?.steps.at(-1)?.reason).toMatch(/was closed by bob: no$/);
    expect(comments(1)).toEqual([]);
  });
});

test('what was published out of band, or is not known to be proposed, supersedes nothing', async () => {
  const revision = (name: string, more: object): PackageRevision =>
    ({
      ...{
        name,
        lifecycle: 'Proposed',
        revision: 0,
        outOfBand: undefined,
        tip: { time: Date.UTC(2030, 0, 3), facts: {} },
      },
      record: { createdAt: '2030-01-01T00:00:00Z', steps: [{ action: 'propose', at: '2030-01-02T00:00:00Z' }] },
      ...more,
    }) as unknown as PackageRevision;
  const proposal = revision('a', {});
  const record = { createdAt: '2030-01-01T12:00:00Z', steps: [] };
  const published = { lifecycle: 'Published', revision: 1, record };
  expect(supersedingOf(proposal, [proposal, revision('b', published)])?.name).toBe('b');
  const later = { ...published, record: { ...record, createdAt: '2030-01-01T13:00:00Z' } };
  expect(supersedingOf(proposal, [revision('c', later), revision('b', published)])?.name).toBe('c');
  const outOfBand = { reason: 'GateUnmet', message: '' };
  expect(supersedingOf(proposal, [revision('b', { ...published, outOfBand })])).toBeUndefined();
  expect(supersedingOf(proposal, [revision('main', { ...published, revision: -1 })])).toBeUndefined();
  expect(supersedingOf(revision('a', { record: undefined }), [revision('b', published)])).toBeUndefined();
  expect(supersedingOf(proposal, [revision('b', { record })])).toBeUndefined();
});
