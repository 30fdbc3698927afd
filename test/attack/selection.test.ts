import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { holdingPlan } from '../../controllers/wave-plan/holding-plan.ts';
import { readSelection } from '../../controllers/wave-plan/select-revisions.ts';
import { dataFolder } from '../../src/app/data/data-folder.ts';
import { Session } from '../../src/app/session/session.ts';
import { type CliFixture, cliFixture } from '../../src/cli/testing.ts';
import { DEFAULT_NETWORK } from '../../src/git/network/git-network.ts';
import { REVIEWED_TYPE } from '../../src/package/model/policy/review-policy.ts';
import { type PackageRevision, packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { packageVariantSetKind } from '../../src/resource/kinds/porch/package-variant-set.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { wavePlanKind } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import type { OwnerReference } from '../../src/resource/object/object.ts';
import type { RequestContext } from '../../src/resource/object/request-context.ts';

/** A user who may write package revisions and not approve, and one who may. */
const EDI: RequestContext = { actor: { name: 'edi' }, face: 'api', mayApprove: async () => false };
const BEN: RequestContext = { actor: { name: 'ben' }, face: 'api', mayApprove: async () => true };
const UPSTREAM = { repo: 'blueprints', package: 'web' };
const CANARY = { packageSelector: { matchLabels: { tier: 'canary' } } };
const EXEMPT = { packageSelector: { matchExpressions: [{ key: 'exempt', operator: 'DoesNotExist' }] } };
const NOT_IN_LAB = { packageSelector: { matchExpressions: [{ key: 'tier', operator: 'NotIn', values: ['lab'] }] } };
const RIGHT = 'that needs the verb "update" on packagerevisions/approval, which User "edi" does not have';

let cli: CliFixture;
let session: Session;
beforeEach(async () => {
  cli = await cliFixture();
  await cli.run('repo', 'reg', cli.bare('edge.git'));
  const folder = dataFolder(cli.data);
  session = await Session.open({ folder, actor: { name: 'ben' }, write: true, network: DEFAULT_NETWORK });
});
afterEach(async () => {
  await session.close();
  await cli[Symbol.asyncDispose]();
});

type Metadata = Partial<Pick<PackageRevision['metadata'], 'labels' | 'ownerReferences'>>;
type PackageMetadata = NonNullable<PackageRevision['spec']['packageMetadata']>;

const storage = () => session.registry.storage(packageRevisionKind);
const keyOf = (name: string) => ({ namespace: 'default', name });

async function draft(packageName: string, workspaceName = 'v1', metadata: Metadata = {}): Promise<string> {
  const made = await storage().create(EDI, {
    ...{ apiVersion: 'porch.kpt.dev/v1alpha1', kind: 'PackageRevision' },
    metadata: { name: '', namespace: 'default', ...metadata },
    spec: {
      ...{ repository: 'edge', packageName, workspaceName, lifecycle: 'Draft' },
      tasks: [{ type: 'init', init: { description: 'x' } }],
    },
  });
  return made.metadata.name;
}

async function write(context: RequestContext, name: string, metadata: Metadata, packageMetadata?: PackageMetadata) {
  const stored = await storage().get(context, keyOf(name));
  const spec = packageMetadata === undefined ? stored.spec : { ...stored.spec, packageMetadata };
  return storage().update(context, { ...stored, metadata: { ...stored.metadata, ...metadata }, spec });
}

async function propose(name: string): Promise<void> {
  const stored = await storage().get(EDI, keyOf(name));
  await storage().update(EDI, { ...stored, spec: { ...stored.spec, lifecycle: 'Proposed' } });
}

const policy = (name: string, spec: object) =>
  session.client.create(packagePolicyKind, {
    metadata: { name },
    spec: packagePolicyKind.complete({ metadata: { name }, spec }).spec,
  });
const plan = (selector: object, spec: object = {}) => {
  const made = wavePlanKind.complete({
    metadata: { name: 'web', namespace: 'default' },
    spec: { selector, waves: [{ name: 'all', percent: 100 }], ...spec },
  });
  return session.client.create(wavePlanKind, made);
};

/** The policies by which controllers approve a revision, and the number of its rules for approvals. */
async function approvedBy(name: string) {
  const { policy: effective } = await session.store.evaluate(`default/${name}`);
  return { automatic: effective.automatic, rules: effective.approvalRules.length };
}

const revisionOf = (name: string) => session.store.get(`default/${name}`);
/** True if the plan may approve it in a wave. */
const isInPlan = async (name: string) =>
  (await readSelection(await session.client.get(wavePlanKind, keyOf('web')), session)).isSelected(revisionOf(name));
const isHeld = async (name: string) => (await holdingPlan(revisionOf(name), session)) !== undefined;

/** Creates a set with a variant of a package, and returns the owner of the revisions of the variant. */
async function variant(set: string, path: string): Promise<OwnerReference> {
  const owner = await session.client.create(packageVariantSetKind, {
    metadata: { name: set },
    spec: { upstream: UPSTREAM, targets: [{ repositories: [{ name: 'edge' }] }] },
  });
  const { uid } = owner.metadata;
  const controller = { apiVersion: owner.apiVersion, kind: owner.kind, name: set, uid, controller: true };
  const made = await session.client.create(packageVariantKind, {
    metadata: { name: path, ownerReferences: [controller] },
    spec: { upstream: UPSTREAM, downstream: { repo: 'edge', package: path } },
  });
  await session.readers.variants.refresh();
  await session.readers.variantSets.refresh();
  return { apiVersion: made.apiVersion, kind: made.kind, name: path, uid: made.metadata.uid, controller: true };
}

describe('a user who may not approve has no controller approve', () => {
  test('by a label that a policy or a plan selects by', async () => {
    const name = await draft('evil');
    await policy('autolabel', { selector: CANARY, approval: { automatic: true } });
    const labels = { tier: 'canary' };
    const why = `is forbidden: the label "tier" lets PackagePolicy autolabel approve it; ${RIGHT}`;
    await expect(write(EDI, name, { labels })).rejects.toThrow(why);
    await expect(draft('other', 'v1', { labels })).rejects.toThrow(why);
    await write(EDI, name, { labels: { team: 'shop' } });
    expect(await approvedBy(name)).toMatchObject({ automatic: [] });
    await write(BEN, name, { labels });
    expect(await approvedBy(name)).toMatchObject({ automatic: ['autolabel'] });
    await session.client.delete(packagePolicyKind, keyOf('autolabel'));
    await write(BEN, name, { labels: {} });
    await plan(CANARY);
    await expect(write(EDI, name, { labels })).rejects.toThrow('the label "tier" lets WavePlan web approve it');
  });

  test('by a label that was there before the policy and the plan', async () => {
    const labels = { tier: 'canary' };
    const name = await draft('evil', 'v1', { labels });
    const changed = await draft('other');
    await write(EDI, changed, { labels });
    await write(EDI, changed, { labels }, { labels });
    await policy('autolabel', { selector: CANARY, approval: { automatic: true } });
    await policy('lax', { selector: CANARY, kptfileApprovals: true });
    await plan(CANARY);
    for (const one of [name, changed]) {
      await propose(one);
      expect(await approvedBy(one)).toMatchObject({ automatic: [] });
      expect(await isInPlan(one)).toBe(false);
      expect(await isHeld(one)).toBe(true);
      expect((await session.store.evaluate(`default/${one}`)).policy.kptfileApprovals).toBe(false);
    }
    await write(BEN, name, { labels: {} });
    await write(BEN, name, { labels });
    expect(await approvedBy(name)).toMatchObject({ automatic: ['autolabel'] });
    expect(await isInPlan(name)).toBe(true);
  });

  test('by the owner of another revision', async () => {
    const owner = await variant('trusted', 'tr1');
    const own = await draft('tr1', 'packagevariant-1', { ownerReferences: [owner] });
    const evil = await draft('evil');
    await policy('autoset', { selector: { variantSets: ['trusted'] }, approval: { automatic: true } });
    expect(await approvedBy(own)).toMatchObject({ automatic: [] });
    // The owner of another package has no effect.
    await write(EDI, evil, { ownerReferences: [owner] });
    expect(await approvedBy(evil)).toMatchObject({ automatic: [] });
    await write(BEN, own, { ownerReferences: [] });
    await expect(write(EDI, own, { ownerReferences: [owner] })).rejects.toThrow(
      `is forbidden: the owner PackageVariant tr1 lets PackagePolicy autoset approve it; ${RIGHT}`,
    );
    await plan({ variantSet: 'trusted' });
    expect(await Promise.all([own, evil].map(isInPlan))).toEqual([false, false]);
    await write(BEN, own, { ownerReferences: [owner] });
    expect(await approvedBy(own)).toMatchObject({ automatic: ['autoset'] });
    expect(await Promise.all([own, evil].map(isInPlan))).toEqual([true, false]);
  });

  test('by a set that has the name of the one that a policy names', async () => {
    const owner = await variant('trusted', 'tr1');
    const own = await draft('tr1', 'packagevariant-1');
    await write(BEN, own, { ownerReferences: [owner] });
    await policy('autoset', { selector: { variantSets: ['trusted'] }, approval: { automatic: true } });
    await plan({ variantSet: 'trusted' });
    await session.client.delete(packageVariantSetKind, keyOf('trusted'));
    await session.client.create(packageVariantSetKind, {
      metadata: { name: 'trusted' },
      spec: { upstream: UPSTREAM, targets: [{ repositories: [{ name: 'edge' }] }] },
    });
    await session.readers.variantSets.refresh();
    expect(await approvedBy(own)).toMatchObject({ automatic: [] });
    expect(await isInPlan(own)).toBe(false);
  });
});

describe('a user who may not approve moves nothing in the order of a plan', () => {
  const WAVES = [
    { name: 'canary', selector: CANARY },
    { name: 'lab', selector: { packageSelector: { matchExpressions: [{ key: 'tier', operator: 'DoesNotExist' }] } } },
    { name: 'rest', percent: 100 },
  ];
  const MOVES = `is forbidden: the change of the label "tier" moves it in the order of WavePlan web; ${RIGHT}`;
  const placeOf = async (name: string) => {
    const made = await session.client.get(wavePlanKind, keyOf('web'));
    return (await readSelection(made, session)).placeOf(session.store.get(`default/${name}`));
  };

  test('by a label that the selector of a wave uses', async () => {
    const name = await draft('prod');
    await write(BEN, name, { labels: { tier: 'prod' } });
    await plan({ repositories: ['edge'] }, { waves: WAVES });
    expect(await placeOf(name)).toEqual({ waves: [] });
    for (const labels of [{ tier: 'canary' }, {}]) await expect(write(EDI, name, { labels })).rejects.toThrow(MOVES);
    await expect(draft('other', 'v1', { labels: { tier: 'canary' } })).rejects.toThrow(MOVES);
    await write(EDI, name, { labels: { tier: 'prod', team: 'shop' } });
    await write(BEN, name, { labels: { tier: 'canary' } });
    expect(await placeOf(name)).toEqual({ waves: ['canary'] });
  });

  test('by a label that was there before the plan, or in the Kptfile', async () => {
    const name = await draft('evil', 'v1', { labels: { tier: 'canary' } });
    const other = await draft('other');
    await write(EDI, other, {}, { labels: { tier: 'canary', order: '0' } });
    await plan({}, { waves: WAVES, order: { label: 'order' } });
    expect(await placeOf(name)).toEqual({ waves: [], label: {} });
    // A selector that requires that there is no label counts all of them.
    expect(await placeOf(other)).toEqual({ waves: [], label: {} });
  });

  test('by the label that sorts', async () => {
    const name = await draft('prod');
    await write(BEN, name, { labels: { order: '5' } });
    await plan({}, { order: { label: 'order' } });
    const why = `the change of the label "order" moves it in the order of WavePlan web; ${RIGHT}`;
    for (const labels of [{ order: '0' }, {}]) await expect(write(EDI, name, { labels })).rejects.toThrow(why);
    expect(await placeOf(name)).toEqual({ waves: [], label: { value: '5' } });
  });

  test('and may remove a label that does not count', async () => {
    const labels = { tier: 'canary', order: '0' };
    const [name, other] = [await draft('own', 'v1', { labels }), await draft('other', 'v1', { labels })];
    await plan({}, { waves: [WAVES[0], WAVES[2]], order: { label: 'order' } });
    const before = await placeOf(name);
    await write(EDI, name, { labels: { tier: 'canary' } });
    await write(EDI, name, { labels: {} });
    expect(await placeOf(name)).toEqual(before);
    await expect(write(EDI, other, { labels: { ...labels, order: '1' } })).rejects.toThrow('moves it in the order');
    await session.client.patch(wavePlanKind, keyOf('web'), { spec: { abort: true } });
    await policy('autolabel', { selector: CANARY, approval: { automatic: true } });
    await expect(write(EDI, name, { labels })).rejects.toThrow('the label "tier" lets PackagePolicy autolabel approve');
  });

  test('nor by the removal of a label that keeps it out of a wave', async () => {
    const name = await draft('own', 'v1', { labels: { tier: 'canary' } });
    await plan({ repositories: ['edge'] }, { waves: WAVES });
    await expect(write(EDI, name, { labels: {} })).rejects.toThrow(MOVES);
    expect(await placeOf(name)).toEqual({ waves: [] });
  });

  test('and may set labels that it does not use', async () => {
    await plan({});
    const name = await draft('web', 'v1', { labels: { team: 'shop' } });
    expect(await isInPlan(name)).toBe(true);
  });

  test('and may write every label once the plan has ended', async () => {
    const name = await draft('web');
    await plan({}, { waves: WAVES });
    await expect(write(EDI, name, { labels: { tier: 'prod' } })).rejects.toThrow(MOVES);
    await session.client.patch(wavePlanKind, keyOf('web'), { spec: { abort: true } });
    await write(EDI, name, { labels: { tier: 'prod' } });
  });
});

describe('a user who may not approve evades no rule for approvals', () => {
  const QUORUM = { quorum: { required: 2 }, forbidSelfApproval: true };

  test('by a label', async () => {
    await policy('qlabel', { selector: CANARY, approval: QUORUM });
    const name = await draft('prod', 'v1', { labels: { tier: 'canary' } });
    const why = `is forbidden: the change of the label "tier" takes it out of PackagePolicy qlabel, which restricts its approval; ${RIGHT}`;
    await expect(write(EDI, name, { labels: {} })).rejects.toThrow(why);
    await expect(write(EDI, name, { labels: { tier: 'lab' } })).rejects.toThrow(why);
    expect(await approvedBy(name)).toMatchObject({ rules: 1 });
    await write(BEN, name, { labels: {} });
    expect(await approvedBy(name)).toMatchObject({ rules: 0 });
  });

  test('by a label in the Kptfile, also with a selector that excludes it', async () => {
    await policy('exempt', { selector: EXEMPT, approval: QUORUM, requiredGates: [{ conditionType: 'tested' }] });
    await policy('prod', { selector: NOT_IN_LAB, approval: QUORUM });
    const names = [await draft('prod'), await draft('other')];
    await write(EDI, names[0] ?? '', {}, { labels: { exempt: 'x', tier: 'lab' } });
    for (const name of names) {
      const { policy: effective } = await session.store.evaluate(`default/${name}`);
      expect(effective.approvalRules.map((rule) => rule.policy).sort(), name).toEqual(['exempt', 'prod']);
      expect(effective.requiredGates.map(({ conditionType }) => conditionType)).toEqual(['tested']);
    }
    // The same label on the object needs the right to approve, and then counts.
    const [name = ''] = names;
    await expect(write(EDI, name, { labels: { exempt: 'x' } })).rejects.toThrow('takes it out of PackagePolicy exempt');
    await write(BEN, name, { labels: { exempt: 'x' } });
    expect(await approvedBy(name)).toMatchObject({ rules: 1 });
  });

  test('and gets no permission by a label in the Kptfile, or by one that was there before the policy', async () => {
    const name = await draft('evil', 'v1', { labels: { tier: 'canary' } });
    const other = await draft('other');
    await write(EDI, other, {}, { labels: { tier: 'canary' } });
    const forge = {
      provider: 'gitea',
      api: 'https://git.example.com/api/v1',
      secretRef: { name: 'git', key: 'token' },
    };
    await policy('lax', {
      selector: CANARY,
      approval: { breakGlass: ['edi'] },
      review: { forge, publishOn: 'approval', approvers: [{ user: 'edi', subject: 'ben' }] },
    });
    const of = async (one: string) => (await session.store.evaluate(`default/${one}`)).policy;
    for (const one of [name, other]) {
      expect(await of(one)).toMatchObject({ breakGlass: [], requiredGates: [{ conditionType: REVIEWED_TYPE }] });
      expect((await of(one)).review).toBeUndefined();
      expect((await of(one)).reviewProblem).toMatch(
        /^no pull request is opened: whether spec.review of the policies lax/,
      );
    }
    await write(BEN, other, { labels: { tier: 'canary' } });
    expect(await of(other)).toMatchObject({ breakGlass: ['edi'], review: { policy: 'lax' } });
    expect((await of(other)).reviewProblem).toBeUndefined();
  });

  test('but may exclude a draft from automatic proposal', async () => {
    await policy('propose', { selector: EXEMPT, autoPropose: true });
    const name = await draft('web');
    const isProposed = async () => (await session.store.evaluate(`default/${name}`)).policy.autoPropose;
    expect(await isProposed()).toBe(true);
    await write(EDI, name, {}, { labels: { exempt: 'x' } });
    expect(await isProposed()).toBe(false);
  });

  test('by a label that a proposal has lost', async () => {
    await policy('qlabel', { selector: CANARY, approval: QUORUM });
    const name = await draft('prod', 'v1', { labels: { tier: 'canary' } });
    await propose(name);
    await write(BEN, name, { labels: {} });
    const { policy: effective } = await session.store.evaluate(`default/${name}`);
    expect(effective.forbidSelfApproval).toBe(true);
    expect(effective.approvalRules).toMatchObject([{ policy: 'qlabel', quorum: { required: 2 } }]);
    // The policy itself can still be changed.
    await session.client.patch(packagePolicyKind, keyOf('qlabel'), { spec: { approval: { quorum: { required: 3 } } } });
    expect((await session.store.evaluate(`default/${name}`)).policy.approvalRules).toMatchObject([
      { quorum: { required: 3 } },
    ]);
    await session.client.delete(packagePolicyKind, keyOf('qlabel'));
    expect(await approvedBy(name)).toMatchObject({ rules: 0 });
  });

  test('by the owners of a revision, or of the variant of a proposal', async () => {
    const owner = await variant('fleet', 'vt1');
    await policy('vs', { selector: { variantSets: ['fleet'] }, approval: QUORUM });
    const name = await draft('vt1', 'packagevariant-1', { ownerReferences: [owner] });
    await write(EDI, name, { ownerReferences: [] });
    expect(await approvedBy(name)).toMatchObject({ rules: 1 });
    await propose(name);
    await session.client.patch(packageVariantKind, keyOf('vt1'), { metadata: { ownerReferences: [] } as never });
    await session.readers.variants.refresh();
    expect(await approvedBy(name)).toMatchObject({ rules: 1 });
    // It ends with the proposal.
    const stored = await storage().get(BEN, keyOf(name));
    await storage().update(BEN, { ...stored, spec: { ...stored.spec, lifecycle: 'Draft' } });
    expect(await approvedBy(name)).toMatchObject({ rules: 0 });
  });
});
