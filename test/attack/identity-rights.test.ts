import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { approvalController } from '../../controllers/approval/approval-controller.ts';
import { ManualClock, settle } from '../../src/foundation/time/manual-clock.ts';
import { type PackageRevision, packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { packageRevisionResourcesKind } from '../../src/resource/kinds/porch/package-revision-resources.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import type { ObjectKey, Stored } from '../../src/resource/object/object.ts';
import type { RequestContext } from '../../src/resource/object/request-context.ts';
import { ANNA, type Fixture, fixture } from '../support/fixture.ts';

const TYPE = 'example.com/Tested';
const APPROVAL = 'approval.nephio.org/policy';
const kptfile = (extra = '') => `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n${extra}`;
const TRUE = `status:\n  conditions:\n    - type: ${TYPE}\n      status: "True"\n`;
const key: ObjectKey = { namespace: 'default', name: 'apps.app.w1' };

let world: Fixture;
let clock: ManualClock;
let warnings: string[];
beforeEach(async () => {
  clock = new ManualClock(Date.parse('2026-01-02T03:04:05Z'));
  world = await fixture(clock);
  await world.register('apps');
  warnings = [];
  await world.client.create(packagePolicyKind, {
    metadata: { name: 'tested' },
    spec: { requiredGates: [{ conditionType: TYPE }] },
  });
  await settle();
  await world.draft('apps/app/w1', { Kptfile: kptfile() });
});
afterEach(() => world[Symbol.asyncDispose]());

/** A user of the API with these rights. */
const user = (name: string, { status = false, approve = false } = {}): RequestContext => ({
  ...{ actor: { name }, face: 'api', warn: (text) => warnings.push(text) },
  mayWriteStatus: async () => status,
  mayApprove: async () => approve,
});

async function push(context: RequestContext, text: string): Promise<void> {
  const storage = world.registry.storage(packageRevisionResourcesKind);
  const object = await storage.get(context, key);
  const spec = { ...object.spec, resources: { ...object.spec.resources, Kptfile: text } };
  await storage.update(context, { ...object, spec } as typeof object);
}

const gate = async () => (await world.store.evaluate(key.name)).gates[0];

describe('conditions in a Kptfile', () => {
  test('that a user without packagerevisions/status pushes are kept, warned of and prove nothing', async () => {
    await push(user('edith'), kptfile(TRUE));
    expect(world.store.get(key.name).kptfile?.status?.conditions).toContainEqual({ type: TYPE, status: 'True' });
    expect(await gate()).toMatchObject({ state: 'Unproven', verdict: undefined });
    expect(warnings).toEqual([
      `conditions in the Kptfile are kept and open no gate, since edith may not update packagerevisions/status: ${TYPE}`,
    ]);
    await expect(world.store.update(key.name, { action: 'propose' }, ANNA)).rejects.toThrow('set the condition again');
    // Nor after she pushes it again, or other files.
    await push(user('edith'), kptfile(`${TRUE}info:\n  description: more\n`));
    expect((await gate())?.state).toBe('Unproven');
    await push(user('tess', { status: true }), kptfile(TRUE.replace('"True"', '"False"')));
    await push(user('tess', { status: true }), kptfile(TRUE));
    expect(await gate()).toMatchObject({ state: 'Open', verdict: { by: 'tess' } });
  });

  test('with a verdict stay proven when the whole package is pushed unchanged, and not when she changes them', async () => {
    await world.store.change(key.name, { conditions: [{ type: TYPE, status: 'True' }] }, ANNA);
    const text = (await world.store.content(key.name)).files.get('Kptfile')?.toString() ?? '';
    await push(user('edith'), text);
    expect(await gate()).toMatchObject({ state: 'Open', verdict: { by: 'anna' } });
    await push(
      user('edith'),
      text.replace(new RegExp(`^( *)(- type: ${TYPE}\\n)`, 'm'), '$1$2$1  message: trust me\n'),
    );
    expect(await gate()).toMatchObject({ state: 'Unproven' });
  });
});

describe('annotations that request an approval', () => {
  async function annotate(context: RequestContext, annotations: Record<string, string>): Promise<PackageRevision> {
    const storage = world.registry.storage(packageRevisionKind);
    const object = (await storage.get(context, key)) as Stored<PackageRevision>;
    return storage.update(context, { ...object, metadata: { ...object.metadata, annotations } } as PackageRevision);
  }

  async function lifecycleAfterControllers(): Promise<string> {
    await world.store.change(key.name, { conditions: [{ type: TYPE, status: 'True' }] }, ANNA);
    await world.settle(key.name);
    const { client, store } = world;
    const { reconcile } = approvalController({ client, store, clock });
    const context = { signal: new AbortController().signal, failures: 0 };
    for (let times = 0; times < 2; times++) await reconcile({ namespace: 'default', name: key.name }, context);
    return store.get(key.name).lifecycle;
  }

  test('are set by those who may approve', async () => {
    await annotate(user('petra', { approve: true }), { [APPROVAL]: 'always' });
    // Others keep it as it is when they write the object back.
    await annotate(user('edith'), { [APPROVAL]: 'always', mine: 'x' });
    expect(warnings).toEqual([]);
    expect(await lifecycleAfterControllers()).toBe('Published');
  });

  test('are left as they were by everybody else', async () => {
    const after = await annotate(user('edith'), { [APPROVAL]: 'always', mine: 'x' });
    expect(after.metadata.annotations).toEqual({ mine: 'x' });
    expect(warnings).toEqual([`${APPROVAL} was left as it was, since edith may not update packagerevisions/approval`]);
    expect(await lifecycleAfterControllers()).toBe('Draft');
  });

  test.each([
    [false, 'Draft'],
    [true, 'Published'],
  ])('count in a Kptfile only if a policy enables that: %s', async (kptfileApprovals, expected) => {
    if (kptfileApprovals) {
      await world.client.create(packagePolicyKind, { metadata: { name: 'lax' }, spec: { kptfileApprovals } });
      await settle();
    }
    await push(user('edith'), kptfile(`  annotations:\n    ${APPROVAL}: always\n`));
    expect(await lifecycleAfterControllers()).toBe(expected);
  });
});
