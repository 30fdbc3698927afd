import { describe, expect, test } from 'vitest';
import { packageKinds } from '../../../../test/support/package-kinds.ts';
import { anna, scratchRepository } from '../../../../test/support/scratch-repository.ts';
import { draft, KPTFILE, outcomeOf, publish } from '../../../../test/support/shop.ts';
import { packageRevisionResourcesKind } from '../../../resource/kinds/porch/package-revision-resources.ts';
import type { RequestContext } from '../../../resource/object/request-context.ts';

const kind = packageRevisionResourcesKind;
const name = 'packages.shop.v1';
const controller: RequestContext = { actor: { name: 'controller:revision' }, face: 'controller' };
const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{}' };
const files = { Kptfile: KPTFILE, 'claim.yaml': 'kind: Claim\n' };
type Files = Readonly<Record<string, string | null>>;

/** A draft whose files were applied, and whose claim a controller then answered. */
async function applied(scratch: Awaited<ReturnType<typeof scratchRepository>>) {
  const world = await packageKinds(scratch);
  await draft(world.store);
  const apply = (resources: Files) =>
    world.client.patch(kind, { name }, { metadata: { annotations }, spec: { resources } });
  await apply(files);
  const answer = { path: 'claim.yaml', text: 'kind: Claim\nstatus: 10.0.0.1\n' };
  const controlled = () =>
    world.store.change(name, { files: new Map([[answer.path, Buffer.from(answer.text)]]) }, controller);
  await controlled();
  return { ...world, apply, controlled, answer };
}

describe('files that are applied again', () => {
  test('leave what controllers made of them, in a draft and after it', async () => {
    await using scratch = await scratchRepository();
    const { store, client, apply, answer } = await applied(scratch);
    await store.change(name, { conditions: [{ type: 'tested', status: 'True', message: 'by hand' }] }, anna);
    for (const step of [() => publish(store, name), async () => undefined]) {
      const { commit } = store.get(name);
      const { spec } = await apply(files);
      expect(spec.resources?.[answer.path]).toBe(answer.text);
      expect(store.get(name).commit).toBe(commit);
      await step();
    }
    expect((await client.get(kind, { name })).spec.revision).toBe(1);
  });

  test('change a draft where they have something new, or another actor wrote since', async () => {
    await using scratch = await scratchRepository();
    const { store, apply, answer } = await applied(scratch);
    const newer = await apply({ ...files, 'claim.yaml': 'kind: Claim\nspec: 1\n' });
    expect(newer.spec.resources?.['claim.yaml']).toBe('kind: Claim\nspec: 1\n');
    await store.change(name, { files: new Map([[answer.path, Buffer.from('kind: Mine\n')]]) }, anna);
    expect((await apply(files)).spec.resources?.['claim.yaml']).toBe('kind: Claim\n');
    const closed = KPTFILE.replace('"True"', '"False"');
    expect((await apply({ Kptfile: closed })).spec.resources?.Kptfile).toContain('"False"');
    expect((await apply({ Kptfile: KPTFILE.replace('Gates', 'GatesX') })).spec.resources?.Kptfile).toContain('GatesX');
  });

  test('are refused with changes once the revision is no longer a draft', async () => {
    await using scratch = await scratchRepository();
    const { store, apply } = await applied(scratch);
    await store.change(name, { conditions: [{ type: 'tested', status: 'True' }] }, anna);
    await store.update(name, { action: 'propose' }, anna);
    for (const changed of [{ 'claim.yaml': 'kind: Other\n' }, { 'claim.yaml': null }, { 'new.yaml': 'a: 1\n' }])
      expect(await outcomeOf(apply({ ...files, ...changed }))).toMatch(
        /^Refused: .*"Proposed"; package must be Draft: "sluice rpkg reject /,
      );
    const closed = KPTFILE.replace('"True"', '"False"');
    expect(await outcomeOf(apply({ Kptfile: closed }))).toMatch(/^Refused/);
    const gates = KPTFILE.replace('conditionType: tested', 'conditionType: other');
    expect(await outcomeOf(apply({ Kptfile: gates }))).toMatch(/^Refused/);
  });

  test('are an edit in a patch or an update', async () => {
    await using scratch = await scratchRepository();
    const { client, controlled, answer } = await applied(scratch);
    const patched = await client.patch(kind, { name }, { spec: { resources: files } });
    expect(patched.spec.resources?.[answer.path]).toBe('kind: Claim\n');
    await controlled();
    const object = await client.get(kind, { name });
    const replaced = await client.update(kind, { ...object, spec: { ...object.spec, resources: files } });
    expect(replaced.spec.resources?.[answer.path]).toBe('kind: Claim\n');
  });
});
