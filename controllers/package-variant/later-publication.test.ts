import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { explainRevision } from '../../src/package/api/explain/explain-revision.ts';
import { kernelExplainer } from '../../src/package/api/explain/explain-state.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { ANNA, fixture } from '../../test/support/fixture.ts';
import { DEPLOYMENT, type VariantBench, variantBench } from '../../test/support/variant-bench.ts';
import { approvalExplainer } from '../approval/explain-approval.ts';

const FIRST = 'edge.web.packagevariant-1';
const SECOND = 'edge.web.packagevariant-2';
const HOTFIX = 'edge.web.hotfix';

let bench: VariantBench;
/** The first revision is published, and the upgrade to another image and text is a draft. */
beforeEach(async () => {
  bench = await variantBench(await fixture(new ManualClock()));
  await bench.publishBlueprint({ 'motd.txt': 'hello\n', 'old.txt': 'old\n' });
  await bench.variant();
  await bench.reconcile();
  await bench.world.publish(FIRST);
  await bench.publishBlueprint({ 'web.yaml': DEPLOYMENT.replace('web:v1', 'web:v2'), 'motd.txt': 'hello, two\n' });
  await bench.reconcile();
});
afterEach(() => bench.world[Symbol.asyncDispose]());

const change = (name: string, files: Readonly<Record<string, string | null>>) => {
  const edits = Object.entries(files).map(([path, text]) => [path, text === null ? null : Buffer.from(text)] as const);
  return bench.world.store.change(name, { files: new Map(edits) }, ANNA);
};

async function publishHotfix(files: Readonly<Record<string, string | null>>, workspace = 'hotfix'): Promise<string> {
  const { store, publish } = bench.world;
  const source = { type: 'copy', source: FIRST } as const;
  const { name } = await store.create('edge', { package: 'web', workspace, source }, ANNA);
  await change(name, files);
  await publish(name);
  return name;
}

const replicas = (count: number) => ({ 'web.yaml': DEPLOYMENT.replace('replicas: 1', `replicas: ${count}`) });

test('files of a user outside of its package, which the branch loses with that, are reported', async () => {
  const { ref, commit } = bench.world.store.get(SECOND);
  const { spec } = await bench.world.client.get(repositoryKind, { namespace: 'default', name: 'edge' });
  await bench.world.push(spec.git?.repo ?? '', { 'docs/notes.md': 'mine\n' }, ref.slice('refs/heads/'.length));
  await bench.world.store.repository('edge').sync();
  const pushed = bench.world.store.get(SECOND).commit;
  expect(pushed).not.toBe(commit);
  await publishHotfix(replicas(9));
  await bench.reconcile();
  expect(bench.world.store.get(SECOND).commit).not.toBe(pushed);
  const [rebased] = (await bench.world.events('web-edge')).filter((text) => text.startsWith('Rebased'));
  expect(rebased).toContain(`${pushed} has changes of 1 file outside of its package (docs/notes.md)`);
});

test('what a user published since the draft was made is merged into it', async () => {
  await change(SECOND, { 'notes.txt': 'of the draft\n' });
  await publishHotfix({ ...replicas(9), 'hotfix.txt': 'hotfix\n', 'motd.txt': 'mine\n', 'old.txt': null });
  await bench.reconcile();
  const events = await bench.world.events('web-edge');
  expect(events).toContain(`Rebased: merged ${HOTFIX}, which was published as v2 after ${SECOND} was made, into it`);
  expect(events.join('\n')).toMatch(/LocalChangesKept: .*motd\.txt/);
  await bench.reconcile();
  const draft = bench.world.store.get(SECOND);
  await bench.reconcile();
  expect(bench.world.store.get(SECOND).etag).toBe(draft.etag);
  expect(await bench.text(SECOND, 'web.yaml')).toContain('replicas: 9');
  expect(await bench.text(SECOND, 'web.yaml')).toContain('image: web:v2');
  expect(await bench.text(SECOND, 'hotfix.txt')).toBe('hotfix\n');
  expect(await bench.text(SECOND, 'notes.txt')).toBe('of the draft\n');
  expect(await bench.text(SECOND, 'motd.txt')).toBe('mine\n');
  expect(await bench.text(SECOND, 'old.txt')).toBe('');
  expect(draft.kptfile?.upstreamLock?.git?.ref).toBe('web/v3');
  const published = await bench.world.publish(SECOND);
  expect(published).toMatchObject({ lifecycle: 'Published', revision: 3 });
});

test('a proposal stays as it was reviewed, waits, and is merged when it is rejected', async () => {
  const { store } = bench.world;
  const { commit } = (await store.update(SECOND, { action: 'propose' }, ANNA)) ?? {};
  await publishHotfix({ ...replicas(9), 'hotfix.txt': 'hotfix\n' });
  await bench.reconcile();
  expect(store.get(SECOND).commit).toBe(commit);
  const waits = `${HOTFIX}, which was published as v2 after ${SECOND} was made, follows when ${SECOND}, which is Proposed, is rejected`;
  expect((await bench.conditions()).join('\n')).toContain(waits);
  const message = `${HOTFIX} was published as v2 after ${SECOND} was made, and an approval of ${SECOND} would undo what it changed in 2 files (hotfix.txt, web.yaml); to merge it into the draft, use "sluice rpkg reject ${SECOND}", then "sluice rpkg rebase ${SECOND}", then propose it again`;
  const { overtaken } = await store.evaluate(SECOND);
  expect(overtaken).toMatchObject({ code: 'PublishedSince', message, later: { name: HOTFIX, revision: 2 } });
  expect(await bench.world.events('web-edge')).toContain(`PublishedSince: ${message}`);
  const controller = { actor: { name: 'controller:wave-plan' }, face: 'controller' } as const;
  await expect(store.update(SECOND, { action: 'approve' }, controller)).rejects.toThrow(message);

  await store.update(SECOND, { action: 'reject' }, ANNA);
  await bench.reconcile();
  expect((await store.evaluate(SECOND)).overtaken).toBeUndefined();
  expect(await bench.text(SECOND, 'hotfix.txt')).toBe('hotfix\n');
  await store.update(SECOND, { action: 'propose' }, ANNA);
  expect(await store.update(SECOND, { action: 'approve' }, controller)).toMatchObject({ lifecycle: 'Published' });
  expect(await bench.text(SECOND, 'web.yaml')).toContain('replicas: 9');
});

test('a user may approve an older draft, is warned, and sees the next steps', async () => {
  const { store } = bench.world;
  const warnings: string[] = [];
  const warned = { ...ANNA, warn: (text: string) => void warnings.push(text) };
  await publishHotfix({ 'hotfix.txt': 'hotfix\n' });
  await store.update(SECOND, { action: 'propose' }, warned);
  const surroundings = { resolvers: [], disabled: [], running: true, now: 0, actor: 'ben' };
  const explainers = [kernelExplainer, approvalExplainer({ store })];
  const why = await explainRevision(store, store.get(SECOND), explainers, surroundings);
  expect(why.reasons).toContainEqual(expect.objectContaining({ reason: 'PublishedSince' }));
  expect(why.next).toEqual([`sluice rpkg diff ${SECOND} latest`, `sluice rpkg reject ${SECOND}`]);
  expect(why.alternatives).toContain(`sluice rpkg approve ${SECOND}`);
  await store.update(SECOND, { action: 'approve' }, warned);
  const undo = `an approval of ${SECOND} would undo what it changed in 1 file (hotfix.txt)`;
  expect(warnings).toEqual([expect.stringContaining(undo), expect.stringContaining(undo)]);
});

test('a draft that was copied from an earlier revision on purpose is no such draft', async () => {
  const { store } = bench.world;
  await publishHotfix({ 'hotfix.txt': 'hotfix\n' });
  const source = { type: 'copy', source: FIRST } as const;
  const { name } = await store.create('edge', { package: 'web', workspace: 'back', source }, ANNA);
  expect((await store.evaluate(name)).overtaken).toBeUndefined();
});

test('a draft is not made from a revision that was followed by another one meanwhile', async () => {
  const { store } = bench.world;
  await publishHotfix({ 'hotfix.txt': 'hotfix\n' });
  const source = { type: 'copy', source: FIRST } as const;
  const wanted = { package: 'web', workspace: 'late', source };
  await expect(store.create('edge', { ...wanted, expectedLatest: FIRST }, ANNA)).rejects.toMatchObject({
    ...{ code: 'Conflict', message: expect.stringContaining(`${HOTFIX} was published after ${FIRST}`) },
  });
  expect(await store.create('edge', { ...wanted, expectedLatest: HOTFIX }, ANNA)).toMatchObject({ lifecycle: 'Draft' });
});
