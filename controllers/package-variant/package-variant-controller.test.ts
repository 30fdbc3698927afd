import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import type { ExplainedRevision, Surroundings } from '../../src/package/api/explain/explainer.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { ANNA, fixture } from '../../test/support/fixture.ts';
import { DEPLOYMENT, type VariantBench, variantBench, withoutCommits } from '../../test/support/variant-bench.ts';
import { countVariants } from '../package-variant-set/variant-counts.ts';
import { describeVariant } from './describe-variant.ts';
import { packageVariantExplainer } from './explain-package-variant.ts';

const KEY = { namespace: 'default', name: 'web-edge' };
const DRAFT = 'edge.web.packagevariant-1';

let bench: VariantBench;
beforeEach(async () => {
  bench = await variantBench(await fixture(new ManualClock()));
});
afterEach(() => bench.world[Symbol.asyncDispose]());

const change = (name: string, files: Readonly<Record<string, string>>) =>
  bench.world.store.change(
    name,
    { files: new Map(Object.entries(files).map(([path, text]) => [path, Buffer.from(text)])) },
    ANNA,
  );

describe('a new variant', () => {
  test('is one commit: the clone with its package context, pipeline and metadata', async () => {
    await bench.variant({
      labels: { tier: 'edge' },
      annotations: { 'approval.nephio.org/policy': 'initial' },
      packageContext: { data: { region: 'us' } },
      pipeline: { mutators: [{ image: 'set-namespace:v0.4.1', name: 'ns', configMap: { namespace: 'web' } }] },
    });
    await bench.reconcile();
    const draft = bench.world.store.get(DRAFT);
    const main = bench.world.store.repository('edge').index.mainHead;
    expect(draft).toMatchObject({ lifecycle: 'Draft', tip: { parents: [main], facts: { face: 'controller' } } });
    expect(draft.kptfile?.upstreamLock?.git).toMatchObject({ directory: 'web', ref: 'web/v1' });
    expect(draft.kptfile?.pipeline?.mutators).toMatchObject([
      { image: 'set-namespace:v0.4.1', name: 'PackageVariant.web-edge.ns.0', configMap: { namespace: 'web' } },
    ]);
    expect(await bench.text(DRAFT, 'package-context.yaml')).toContain('data:\n  name: web\n  region: us\n');
    const { metadata } = await bench.world.client.get(packageVariantKind, KEY);
    expect(metadata.finalizers).toEqual(['config.porch.kpt.dev/packagevariants']);
    expect(draft.record).toMatchObject({
      labels: { tier: 'edge' },
      annotations: { 'approval.nephio.org/policy': 'initial' },
      ownerReferences: [{ kind: 'PackageVariant', name: 'web-edge', uid: metadata.uid, controller: true }],
      task: { type: 'clone', clone: { upstreamRef: { upstreamRef: { name: 'blueprints.web.w1' } } } },
    });
    expect(await bench.conditions()).toEqual([
      'Stalled=False/Valid: all validation checks passed',
      'Ready=True/NoErrors: successfully ensured downstream package variant',
    ]);
    const { status } = await bench.world.client.get(packageVariantKind, KEY);
    expect(status?.downstreamTargets).toEqual([{ name: DRAFT }]);
    expect(await bench.world.events('web-edge')).toEqual([`Cloned: created ${DRAFT} from blueprints/web v1`]);
    await bench.reconcile();
    expect(bench.world.store.get(DRAFT).etag).toBe(draft.etag);
  });

  test('waits for its upstream package', async () => {
    await bench.variant({ upstream: { repo: 'blueprints', package: 'web', revision: 2 } });
    await bench.reconcile();
    expect(await bench.conditions()).toEqual([
      'Stalled=True/ValidationError: could not find upstream package revision blueprints/web with revision 2; change spec.upstream',
      'Ready=False/Error: invalid packagevariant object',
    ]);
    await bench.publishBlueprint({ 'web.yaml': DEPLOYMENT.replace('v1\n', 'v2\n') });
    await bench.reconcile();
    expect(bench.world.store.get(DRAFT).kptfile?.upstreamLock?.git).toMatchObject({ ref: 'web/v2' });
    expect((await bench.conditions())[0]).toBe('Stalled=False/Valid: all validation checks passed');
  });

  test('clones no draft, and nothing of a repository that is not registered', async () => {
    await bench.world.draft('blueprints/api/w1');
    await bench.variant({ upstream: { repo: 'blueprints', package: 'api', workspaceName: 'w1' } });
    await bench.reconcile();
    expect((await bench.conditions())[0]).toContain('is Draft: publish blueprints.api.w1 first');
    await bench.variant({ upstream: { repo: 'gone', package: 'api' } }, 'other');
    await bench.reconcile('other');
    expect((await bench.conditions('other'))[0]).toContain('repository gone is not registered');
    await bench.variant({ downstream: { repo: 'gone', package: 'api' } }, 'nowhere');
    expect(await bench.reconcile('nowhere')).toMatchObject({ requeueAfter: 600_000 });
    expect((await bench.conditions('nowhere'))[1]).toContain('Ready=False/Error: repository gone is not registered');
  });

  test('follows a branch: another package on it changes nothing', async () => {
    const { world } = bench;
    await bench.variant({ upstream: { repo: 'blueprints', package: 'web', workspaceName: 'main' } });
    await bench.reconcile();
    const { commit } = world.store.get(DRAFT);
    const other = await world.draft('blueprints/api/w1');
    await world.publish(other.name);
    await bench.reconcile();
    expect(world.store.get(DRAFT).commit).toBe(commit);
    await world.publish(DRAFT);
    await bench.publishBlueprint({ 'web.yaml': DEPLOYMENT.replace('replicas: 1', 'replicas: 2') });
    await bench.reconcile();
    expect(bench.downstream()).toEqual(['packagevariant-1 Published v1', 'packagevariant-2 Draft']);
    expect(await bench.text('edge.web.packagevariant-2', 'web.yaml')).toContain('replicas: 2');
  });
});

describe('a new upstream revision', () => {
  test('opens at most five drafts of a package in a minute, whichever user or policy publishes them', async () => {
    await bench.variant();
    for (let number = 1; number <= 5; number += 1) {
      await bench.reconcile();
      await bench.world.publish(`edge.web.packagevariant-${number}`);
      await bench.publishBlueprint({ 'n.txt': `${number}` });
    }
    for (let turn = 0; turn < 2; turn += 1)
      expect(await bench.reconcile()).toEqual({
        requeueAfter: 12_000,
        reason: expect.stringContaining('waits to open'),
      });
    expect((await bench.conditions())[1]).toBe(
      'Ready=False/Waiting: waits to open a draft: at most 5 drafts of a package are opened in a minute; does each of them lead to another revision of its upstream?',
    );
    expect(bench.downstream()).toHaveLength(5);
    // Also after a restart.
    expect(await bench.on({})()).toEqual({ requeueAfter: 12_000, reason: expect.stringContaining('waits to open') });
    (bench.world.clock as ManualClock).advance(12_000);
    expect(await bench.on({})()).toBeUndefined();
    expect(bench.downstream()).toContain('packagevariant-6 Draft');
  });

  test('is merged into the open draft, with the changes of users, in one commit', async () => {
    await bench.variant();
    await bench.reconcile();
    await change(DRAFT, { 'web.yaml': (await bench.text(DRAFT, 'web.yaml')).replace('replicas: 1', 'replicas: 5') });
    const { commit } = bench.world.store.get(DRAFT);
    await bench.publishBlueprint({ 'web.yaml': DEPLOYMENT.replace('web:v1', 'web:v2'), 'new.yaml': 'a: 1\n' });
    await bench.reconcile();
    expect(bench.downstream()).toEqual(['packagevariant-1 Draft']);
    const draft = bench.world.store.get(DRAFT);
    expect(draft.tip.parents).toEqual([commit]);
    expect(draft.kptfile?.upstreamLock?.git?.ref).toBe('web/v2');
    const text = await bench.text(DRAFT, 'web.yaml');
    expect(text).toContain('replicas: 5');
    expect(text).toContain('image: web:v2');
    expect(await bench.text(DRAFT, 'new.yaml')).toContain('a: 1');
    await bench.reconcile();
    expect(bench.world.store.get(DRAFT).commit).toBe(draft.commit);
  });

  test('becomes an upgrade of what is published, with the changes of users there', async () => {
    await bench.variant({ pipeline: { validators: [{ image: 'kubeconform:v0.1' }] } });
    await bench.reconcile();
    await bench.world.publish(DRAFT);
    // A user publishes a revision of their own.
    const source = { type: 'copy', source: DRAFT } as const;
    const own = await bench.world.store.create('edge', { package: 'web', workspace: 'own', source }, ANNA);
    await change(own.name, { 'web.yaml': (await bench.text(DRAFT, 'web.yaml')).replace('replicas: 1', 'replicas: 7') });
    await bench.world.publish(own.name);
    await bench.reconcile();
    expect(bench.downstream()).toEqual(['own Published v2', 'packagevariant-1 Published v1']);
    await bench.publishBlueprint({ 'web.yaml': DEPLOYMENT.replace('web:v1', 'web:v2') });
    await bench.reconcile();
    expect(bench.downstream()).toContain('packagevariant-2 Draft');
    const draft = bench.world.store.get('edge.web.packagevariant-2');
    expect(draft.record?.task).toMatchObject({
      type: 'upgrade',
      upgrade: { newUpstreamRef: { name: 'blueprints.web.w2' }, localPackageRevisionRef: { name: 'edge.web.own' } },
    });
    const text = await bench.text(draft.name, 'web.yaml');
    expect(text).toContain('replicas: 7');
    expect(text).toContain('web:v2');
    expect(draft.kptfile?.pipeline?.validators).toHaveLength(1);
    await bench.reconcile();
    expect(bench.world.store.get(draft.name).etag).toBe(draft.etag);
  });

  test('waits for the decision about a proposed revision', async () => {
    await bench.variant();
    await bench.reconcile();
    await bench.world.store.update(DRAFT, { action: 'propose' }, ANNA);
    await bench.publishBlueprint({ 'web.yaml': DEPLOYMENT.replace('web:v1', 'web:v2') });
    await bench.reconcile();
    expect(bench.downstream()).toEqual(['packagevariant-1 Proposed']);
    expect((await bench.conditions())[1]).toBe(
      `Ready=True/NoErrors: successfully ensured downstream package variant; blueprints/web v2 follows when ${DRAFT}, which is Proposed, is approved or rejected`,
    );
    const variant = await bench.world.client.get(packageVariantKind, KEY);
    expect(describeVariant(variant).state).toBe('waits for a decision');
    expect(countVariants([variant])).toEqual({ total: 1, ready: 0, waiting: 1, failing: 0 });
    await bench.world.store.update(DRAFT, { action: 'approve' }, { ...ANNA, actor: { name: 'berta' } });
    await bench.reconcile();
    expect(bench.downstream()).toEqual(['packagevariant-1 Published v1', 'packagevariant-2 Draft']);
  });

  test('that conflicts keeps the local change, and reports it', async () => {
    await bench.variant();
    await bench.reconcile();
    await change(DRAFT, { 'notes.txt': 'mine\n' });
    await bench.publishBlueprint({ 'notes.txt': 'upstream\n' });
    await bench.reconcile();
    expect(await bench.text(DRAFT, 'notes.txt')).toBe('mine\n');
    const what = 'changed upstream, and kept as they were changed locally: notes.txt';
    const kept = `${DRAFT} at ${bench.world.store.get(DRAFT).commit.slice(0, 12)}: ${what}`;
    expect(await bench.world.events('web-edge')).toContainEqual(`LocalChangesKept: ${kept}`);
    expect(await bench.conditions()).toContain(`LocalChangesKept=True/ChangedUpstream: ${kept}`);
    const { client, store } = bench.world;
    expect(describeVariant(await client.get(packageVariantKind, KEY)).reasons).toContain(kept);
    const evaluation = await store.evaluate(DRAFT);
    const explained = packageVariantExplainer({ client }).explain(
      { evaluation } as ExplainedRevision,
      {} as Surroundings,
    );
    expect((await explained).reasons).toContainEqual({ reason: 'LocalChangesKept', message: kept });
    await bench.world.publish(DRAFT);
    await bench.reconcile();
    const decided = `no open revision has files that both sides changed; ${DRAFT} is decided`;
    expect(await bench.conditions()).toContain(`LocalChangesKept=False/Decided: ${decided}`);
    const history = await store.history(DRAFT, 10);
    expect(history.map(({ what }) => what)).toContain(`Upgrading revision (${what})`);
  });

  test('that overwrites a local change reports it until the draft is decided', async () => {
    await bench.variant();
    await bench.reconcile();
    const mine = (image: string) => DEPLOYMENT.replace('web:v1', image);
    await change(DRAFT, { 'web.yaml': mine('web:mine').replace('replicas: 1', 'replicas: 3') });
    await bench.publishBlueprint({ 'web.yaml': mine('web:v2') });
    await bench.reconcile();
    expect(await bench.text(DRAFT, 'web.yaml')).toContain('replicas: 3');
    const image = 'Deployment/web spec.template.spec.containers[web].image';
    const at = () => bench.world.store.get(DRAFT).commit.slice(0, 12);
    const first = at();
    const message = `${DRAFT} at ${first}: changed on both sides, and overwritten by upstream: ${image} (was web:mine) in web.yaml`;
    expect(await bench.world.events('web-edge')).toContainEqual(`LocalChangesOverwritten: ${message}`);
    const reported = `LocalChangesOverwritten=True/ChangedUpstream: ${message}`;
    expect((await bench.conditions())[2]).toBe(reported);
    expect(describeVariant(await bench.world.client.get(packageVariantKind, KEY)).reasons).toContain(message);
    await bench.reconcile();
    expect((await bench.conditions())[2]).toBe(reported);

    // Another upgrade adds to it.
    await change(DRAFT, { 'web.yaml': (await bench.text(DRAFT, 'web.yaml')).replace('web:v2', 'web:own') });
    await bench.publishBlueprint({ 'web.yaml': mine('web:v3') });
    await bench.reconcile();
    expect((await bench.conditions())[2]).toBe(
      `${reported.replace('web:mine', 'web:own').replace(first, at())}; before that, ${message}`,
    );
    await bench.world.publish(DRAFT);
    await bench.reconcile();
    expect((await bench.conditions())[2]).toBe(
      `LocalChangesOverwritten=False/Decided: no open revision has overwritten changes; ${DRAFT} is decided`,
    );

    // So does one from what is published.
    const own = await bench.world.store.create(
      'edge',
      { package: 'web', workspace: 'own', source: { type: 'copy', source: DRAFT } },
      ANNA,
    );
    await change(own.name, { 'web.yaml': (await bench.text(DRAFT, 'web.yaml')).replace('web:v3', 'web:again') });
    await bench.world.publish(own.name);
    await bench.publishBlueprint({ 'web.yaml': mine('web:v4') });
    await bench.reconcile();
    expect(withoutCommits((await bench.conditions())[2] ?? '')).toBe(
      `LocalChangesOverwritten=True/ChangedUpstream: edge.web.packagevariant-2: changed on both sides, and overwritten by upstream: ${image} (was web:again) in web.yaml`,
    );
    // A new draft may get the name of a deleted one.
    const again = 'edge.web.packagevariant-2';
    await bench.world.store.update(again, { action: 'delete' }, ANNA);
    const spec = { upstream: { revision: 3 }, packageContext: { data: { region: 'us' } } };
    await bench.world.client.patch(packageVariantKind, KEY, { spec });
    await bench.reconcile();
    expect(bench.world.store.get(again).lifecycle).toBe('Draft');
    expect((await bench.conditions())[2]).toMatch(/^LocalChangesOverwritten=False/);
  });

  test('does not report what the variant itself changes again', async () => {
    await bench.variant({ pipeline: { mutators: [{ image: 'a:v1' }] } });
    const pipeline = (image: string) =>
      `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\npipeline:\n  mutators:\n    - image: ${image}\n`;
    await bench.publishBlueprint({ Kptfile: pipeline('b:v1') });
    await bench.reconcile();
    await bench.publishBlueprint({ Kptfile: pipeline('b:v2') });
    await bench.reconcile();
    const { mutators } = bench.world.store.get(DRAFT).kptfile?.pipeline ?? {};
    expect(mutators?.map(({ image }) => image)).toEqual(['a:v1', 'b:v2']);
    expect((await bench.world.events('web-edge')).filter((text) => text.startsWith('Local'))).toEqual([]);
    expect(await bench.conditions()).toHaveLength(2);
  });

  test('of another number is a downgrade', async () => {
    await bench.publishBlueprint({ 'web.yaml': DEPLOYMENT.replace('web:v1', 'web:v2') });
    await bench.variant({ upstream: { repo: 'blueprints', package: 'web', revision: 2 } });
    await bench.reconcile();
    await bench.world.client.patch(packageVariantKind, KEY, { spec: { upstream: { revision: 1 } } });
    await bench.reconcile();
    expect(await bench.text(DRAFT, 'web.yaml')).toContain('image: web:v1');
    expect(bench.world.store.get(DRAFT).kptfile?.upstreamLock?.git?.ref).toBe('web/v1');
  });
});

describe('a change of the variant', () => {
  test('changes the open draft, and opens one from what is published', async () => {
    await bench.variant({ pipeline: { mutators: [{ image: 'a:v1' }, { image: 'b:v1' }] } });
    await bench.reconcile();
    const own = DRAFT;
    const mutators = (name: string) =>
      bench.world.store.get(name).kptfile?.pipeline?.mutators?.map(({ image }) => image);
    await bench.world.store.change(
      own,
      { kptfile: [{ op: 'addFunction', list: 'mutators', function: { image: 'users:v1' } }] },
      ANNA,
    );
    await bench.world.client.patch(packageVariantKind, KEY, {
      spec: { pipeline: { mutators: [{ image: 'c:v1' }] }, labels: { tier: 'edge' } },
    });
    await bench.reconcile();
    expect(mutators(own)).toEqual(['c:v1', 'users:v1']);
    expect(bench.world.store.get(own).record?.labels).toEqual({ tier: 'edge' });
    await bench.world.publish(own);
    await bench.reconcile();
    expect(bench.downstream()).toEqual(['packagevariant-1 Published v1']);
    await bench.world.client.patch(packageVariantKind, KEY, { spec: { pipeline: null } });
    await bench.reconcile();
    expect(bench.downstream()).toEqual(['packagevariant-1 Published v1', 'packagevariant-2 Draft']);
    expect(mutators('edge.web.packagevariant-2')).toEqual(['users:v1']);
    expect(bench.world.store.get('edge.web.packagevariant-2').record?.task).toMatchObject({ type: 'edit' });
  });

  test('to another downstream package ends the former one', async () => {
    await bench.variant();
    await bench.reconcile();
    await bench.world.client.patch(packageVariantKind, KEY, { spec: { downstream: { package: 'shop' } } });
    await bench.reconcile();
    expect(bench.downstream()).toEqual([]);
    expect(bench.downstream('shop')).toEqual(['packagevariant-1 Draft']);
  });
});

describe('adoption', () => {
  test('adoptNone leaves a package alone; adoptExisting takes it over', async () => {
    const clone = { type: 'clone', upstream: { revision: 'blueprints.web.w1' } } as const;
    const mine = await bench.world.store.create('edge', { package: 'web', workspace: 'mine', source: clone }, ANNA);
    await bench.variant({ labels: { tier: 'edge' } });
    await bench.reconcile();
    expect((await bench.conditions())[1]).toBe(
      'Ready=False/Error: package web exists in repository edge and does not belong to this variant; set spec.adoptionPolicy to adoptExisting, or choose another spec.downstream',
    );
    await bench.world.client.patch(packageVariantKind, KEY, { spec: { adoptionPolicy: 'adoptExisting' } });
    await bench.reconcile();
    expect(bench.downstream()).toEqual(['mine Draft']);
    expect(bench.world.store.get(mine.name).record).toMatchObject({
      labels: { tier: 'edge' },
      ownerReferences: [{ name: 'web-edge' }],
    });
    expect((await bench.conditions())[1]).toContain('Ready=True');
  });

  test('gives published revisions an owner and no labels, by which targets select', async () => {
    const clone = { type: 'clone', upstream: { revision: 'blueprints.web.w1' } } as const;
    const mine = await bench.world.store.create('edge', { package: 'web', workspace: 'mine', source: clone }, ANNA);
    await bench.world.publish(mine.name);
    await bench.variant({ adoptionPolicy: 'adoptExisting', labels: { tier: 'edge' } });
    await bench.reconcile();
    expect(bench.downstream()).toEqual(['mine Published v1']);
    const { record } = bench.world.store.get(mine.name);
    expect(record).toMatchObject({ labels: {}, ownerReferences: [{ name: 'web-edge' }] });
  });

  test('a package that it cannot keep up to date stays with its user, also when the variant is deleted', async () => {
    const { name } = await bench.world.draft('edge/web/mine');
    const isOwned = () => (bench.world.store.get(name).record?.ownerReferences ?? []).length > 0;
    const fails = async () => {
      await bench.reconcile();
      expect((await bench.conditions())[1]).toContain('has no upstreamLock');
      expect(isOwned()).toBe(false);
    };
    await bench.variant({ adoptionPolicy: 'adoptExisting', deletionPolicy: 'delete', labels: { tier: 'edge' } });
    await fails();
    await bench.world.publish(name);
    await fails();
    await bench.world.client.delete(packageVariantKind, KEY);
    await bench.reconcile();
    expect(bench.downstream()).toEqual(['mine Published v1']);
  });

  test('replaces an earlier variant of the same name', async () => {
    await bench.variant();
    await bench.reconcile();
    const old = await bench.world.client.get(packageVariantKind, KEY);
    await bench.world.client.patch(packageVariantKind, KEY, { metadata: { finalizers: null } });
    await bench.world.client.delete(packageVariantKind, KEY);
    await bench.variant();
    await bench.reconcile();
    expect((await bench.conditions())[1]).toContain('set spec.adoptionPolicy to adoptExisting');
    await bench.world.client.patch(packageVariantKind, KEY, { spec: { adoptionPolicy: 'adoptExisting' } });
    await bench.reconcile();
    expect(bench.downstream()).toEqual(['packagevariant-1 Draft']);
    const { metadata } = await bench.world.client.get(packageVariantKind, KEY);
    expect(metadata.uid).not.toBe(old.metadata.uid);
    expect(bench.world.store.get(DRAFT).record?.ownerReferences).toMatchObject([{ uid: metadata.uid }]);
  });

  test('of two variants with one downstream package, the second reports the first', async () => {
    await bench.variant();
    await bench.reconcile();
    await bench.variant({ adoptionPolicy: 'adoptExisting' }, 'second');
    await bench.reconcile('second');
    expect((await bench.conditions('second'))[1]).toBe(
      'Ready=False/Error: package web in repository edge belongs to PackageVariant web-edge; choose another spec.downstream, or delete that object',
    );
    expect(bench.downstream()).toEqual(['packagevariant-1 Draft']);
  });
});

describe('deletion', () => {
  const remove = async () => {
    await bench.world.client.delete(packageVariantKind, KEY);
    await bench.reconcile();
    expect(await bench.world.client.find(packageVariantKind, KEY)).toBeUndefined();
  };

  test('delete removes drafts, and proposes the deletion of what is published, which a user approves', async () => {
    await bench.variant();
    await bench.reconcile();
    await bench.world.publish(DRAFT);
    await bench.publishBlueprint({ 'web.yaml': DEPLOYMENT.replace('web:v1', 'web:v2') });
    await bench.reconcile();
    await remove();
    expect(bench.downstream()).toEqual(['packagevariant-1 DeletionProposed v1']);
    // Without an owner: the garbage collection does not complete the deletion.
    expect(bench.world.store.get(DRAFT).record?.ownerReferences).toEqual([]);

    // The same variant again names the state and the steps, which work.
    await bench.variant();
    await bench.reconcile();
    const problem = `package web exists in repository edge and does not belong to this variant, and ${DRAFT} is proposed for deletion; to keep it, reject the deletion ("sluice rpkg reject ${DRAFT}") and set spec.adoptionPolicy to adoptExisting; otherwise choose another spec.downstream`;
    expect((await bench.conditions())[1]).toBe(`Ready=False/Error: ${problem}`);
    const commands = async () => describeVariant(await bench.world.client.get(packageVariantKind, KEY)).commands;
    const reject = `sluice rpkg reject ${DRAFT}`;
    const policy = { spec: { adoptionPolicy: 'adoptExisting' } } as const;
    const adopt = `kubectl -n default patch packagevariant web-edge --type merge -p '${JSON.stringify(policy)}'`;
    expect(await commands()).toEqual([reject, adopt]);
    await bench.world.client.patch(packageVariantKind, KEY, policy);
    await bench.reconcile();
    expect(await commands()).toEqual([reject]);
    await bench.world.store.update(`default/${DRAFT}`, { action: 'reject' }, ANNA);
    await bench.reconcile();
    expect(await bench.conditions()).toContainEqual(expect.stringContaining('Ready=True'));
    expect(await commands()).toBeUndefined();
    expect(bench.world.store.get(DRAFT).record?.ownerReferences).toMatchObject([{ name: 'web-edge' }]);
  });

  test('orphan keeps all', async () => {
    await bench.variant({ deletionPolicy: 'orphan' });
    await bench.reconcile();
    await remove();
    expect(bench.downstream()).toEqual(['packagevariant-1 Draft']);
    expect(bench.world.store.get(DRAFT).record?.ownerReferences).toEqual([]);
  });
});

test('a push between the decision and the write is kept', async () => {
  const { world } = bench;
  await bench.variant();
  await bench.reconcile();
  await bench.publishBlueprint({ 'web.yaml': DEPLOYMENT.replace('web:v1', 'web:v2') });
  const racing = bench.on({
    store: new Proxy(world.store, {
      get: (store, property) => {
        if (property !== 'change') {
          const value = Reflect.get(store, property) as unknown;
          return typeof value === 'function' ? value.bind(store) : value;
        }
        return async (...request: Parameters<typeof store.change>) => {
          await change(DRAFT, { 'mine.yaml': 'a: 1\n' });
          return store.change(...request);
        };
      },
    }),
  });
  await expect(racing()).rejects.toMatchObject({ code: 'Conflict' });
  await bench.reconcile();
  expect(await bench.text(DRAFT, 'mine.yaml')).toContain('a: 1');
  expect(await bench.text(DRAFT, 'web.yaml')).toContain('web:v2');
});

test('labels and annotations that only the server or a request may set do not get onto revisions', async () => {
  const requests = { 'sluice.dev/break-glass': 'no reason', 'sluice.dev/affirm': 'a', 'sluice.dev/problem': 'none' };
  await bench.variant({
    labels: { 'kpt.dev/latest-revision': 'true', tier: 'gold' },
    annotations: { ...requests, 'example.com/a': 'b' },
  });
  await bench.reconcile();
  const { metadata } = await bench.world.client.get(packageRevisionKind, {
    namespace: 'default',
    name: 'edge.web.packagevariant-1',
  });
  expect(metadata).toMatchObject({ labels: { tier: 'gold' }, annotations: { 'example.com/a': 'b' } });
  expect(Object.keys(metadata.labels ?? {})).toEqual(['tier']);
  expect(Object.keys(metadata.annotations ?? {})).toEqual(['example.com/a']);
  await bench.reconcile();
  expect(bench.downstream()).toEqual(['packagevariant-1 Draft']);
});
