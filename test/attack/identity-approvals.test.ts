import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { approvalController } from '../../controllers/approval/approval-controller.ts';
import { proposalController } from '../../controllers/proposal/proposal-controller.ts';
import { ManualClock, settle } from '../../src/foundation/time/manual-clock.ts';
import { BREAK_GLASS_ANNOTATION } from '../../src/package/api/objects/revision-object.ts';
import { AUTO_LIFECYCLE_ANNOTATION } from '../../src/package/model/revision/lifecycle-annotations.ts';
import { RegistryClient } from '../../src/resource/client/registry-client.ts';
import { type PackageRevision, packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { ANNA, type Fixture, fixture } from '../support/fixture.ts';

const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n';
const CONTEXT = { signal: new AbortController().signal, failures: 0 };

let clock: ManualClock;
let world: Fixture;
let branch: string;
beforeEach(async () => {
  clock = new ManualClock(Date.parse('2026-01-02T03:04:05Z'));
  world = await fixture(clock);
  branch = await world.register('apps');
});
afterEach(() => world[Symbol.asyncDispose]());

/** The API as one user sees it, with the warnings that the user gets. */
function as(name: string) {
  const warnings: string[] = [];
  const client = new RegistryClient(world.registry, { name }, 'api', (text) => warnings.push(text));
  const read = (revision: string) => client.get(packageRevisionKind, { namespace: 'default', name: revision });
  const step = async (revision: string, lifecycle: 'Published' | 'Draft', annotations: Record<string, string> = {}) => {
    const object = await read(revision);
    return client.subResource('approval').update(packageRevisionKind, {
      ...object,
      metadata: { ...object.metadata, annotations: { ...object.metadata.annotations, ...annotations } },
      spec: { ...object.spec, lifecycle },
    } as PackageRevision);
  };
  return {
    client,
    warnings,
    read,
    approve: (of: string, extra?: Record<string, string>) => step(of, 'Published', extra),
  };
}

async function policy(spec: Record<string, unknown>): Promise<void> {
  await world.client.create(packagePolicyKind, { metadata: { name: 'production' }, spec });
  await settle();
}

describe('with forbidSelfApproval', () => {
  test('the example of docs/gates.md: its author does not get a package past it by letting a controller propose it', async () => {
    await policy({
      selector: { repositories: ['apps'] },
      requiredGates: [{ conditionType: 'example.com/SecurityReview', approveOnly: true }],
      givers: [{ conditionType: 'example.com/SecurityReview', actors: ['sec'] }],
      pushDenied: ['example.com/SecurityReview'],
      autoPropose: true,
      approval: { forbidSelfApproval: true },
      commitBudgetPerHour: 50,
      gateDeadlines: [{ conditionType: 'example.com/SecurityReview', after: '48h' }],
    });
    const { name } = await world.draft('apps/app/w1', { Kptfile: KPTFILE });
    await world.settle(name);
    const { client, store } = world;
    await proposalController({ client, store, clock }).reconcile({ namespace: 'default', name }, CONTEXT);
    expect(store.get(name).lifecycle).toBe('Proposed');
    await store.change(
      name,
      { conditions: [{ type: 'example.com/SecurityReview', status: 'True' }] },
      { ...ANNA, actor: { name: 'sec' } },
    );
    await expect(as('anna').approve(name)).rejects.toThrow(
      `anna changed the content of ${name} and must not approve it; another user has to`,
    );
    expect((await as('berta').approve(name)).spec.lifecycle).toBe('Published');
  });

  test.each(['on the revision', 'in the Kptfile'])(
    'nor by the annotation of the automatic lifecycle %s',
    async (where) => {
      await policy({ approval: { forbidSelfApproval: true }, kptfileApprovals: true });
      const annotations = { [AUTO_LIFECYCLE_ANNOTATION]: 'true', 'approval.nephio.org/policy': 'always' };
      const lines = Object.entries(annotations).map(([key, value]) => `    ${key}: "${value}"\n`);
      const kptfile = where === 'in the Kptfile' ? `${KPTFILE}  annotations:\n${lines.join('')}` : KPTFILE;
      const { name } = await world.draft('apps/app/w1', { Kptfile: kptfile });
      if (where !== 'in the Kptfile') await world.store.change(name, { metadata: { annotations } }, ANNA);
      await world.settle(name);
      const { client, store } = world;
      const controllers = [proposalController({ client, store, clock }), approvalController({ client, store, clock })];
      for (const { reconcile } of [...controllers, ...controllers])
        await reconcile({ namespace: 'default', name }, CONTEXT);
      expect(store.get(name).lifecycle).toBe('Proposed');
      await expect(as('anna').approve(name)).rejects.toThrow('anna changed the content');
    },
  );

  test('what an unknown person pushed needs two; the first approval keeps it proposed, with a warning and in the status', async () => {
    await policy({ approval: { forbidSelfApproval: true } });
    await world.push(branch, { 'app/Kptfile': KPTFILE }, 'proposed/app/w1', 'refs/heads/main');
    await world.store.repository('apps').refresh();
    const name = 'apps.app.w1';
    const berta = as('berta');
    const once = await berta.approve(name);
    expect(once.spec.lifecycle).toBe('Proposed');
    expect(once.status).toMatchObject({
      contributors: [{ name: 'push', face: 'git' }],
      approvals: { needed: 2, given: [{ subject: 'berta', face: 'api' }] },
    });
    expect(berta.warnings).toEqual([expect.stringContaining('1 of 2 approvals: ')]);
    expect((await berta.approve(name)).spec.lifecycle).toBe('Proposed');
    // Other content: the approval does not count any more.
    await world.push(branch, { 'app/evil.yaml': 'a: 1\n' }, 'proposed/app/w1');
    await world.store.repository('apps').refresh();
    expect((await as('carla').approve(name)).spec.lifecycle).toBe('Proposed');
    expect((await berta.approve(name)).spec).toMatchObject({ lifecycle: 'Published', revision: 1 });
    const history = await world.store.history(name);
    expect(history.map(({ action, by }) => `${action} ${by}`)).toContain('approval carla');
  });

  test('an approval after the publication reports who published it', async () => {
    const { name } = await world.draft('apps/app/w1', { Kptfile: KPTFILE });
    await world.publish(name);
    const carla = as('carla');
    expect((await carla.approve(name)).spec.lifecycle).toBe('Published');
    expect(carla.warnings).toEqual([`${name} is published already as v1, approved by berta`]);
    const late = world.store.update(name, { action: 'approve' }, { ...ANNA, actor: { name: 'carla' } });
    await expect(late).rejects.toThrow(
      'cannot approve package with Published lifecycle value; only Proposed packages can be approved; it is published as v1, approved by berta',
    );
  });
});

describe('closed gates', () => {
  async function proposed(): Promise<string> {
    await policy({
      requiredGates: [{ conditionType: 'tested', approveOnly: true }],
      approval: { breakGlass: ['oncall'] },
    });
    const { name } = await world.draft('apps/app/w1', { Kptfile: KPTFILE });
    await world.store.update(name, { action: 'propose' }, ANNA);
    return name;
  }
  const because = (reason: string) => ({ [BREAK_GLASS_ANNOTATION]: reason });

  test('are passed only by those whom a policy names, with a reason, which stays in the statement', async () => {
    const name = await proposed();
    await expect(as('anna').approve(name, because('because'))).rejects.toThrow(
      'no policy permits anna to publish with closed gates',
    );
    await expect(as('oncall').approve(name)).rejects.toThrow('gate tested is closed');
    await expect(as('oncall').approve(name, because(' '))).rejects.toThrow('needs a reason');
    const made = await as('oncall').approve(name, because('the site is down'));
    expect(made.spec.lifecycle).toBe('Published');
    expect(made.metadata.annotations).toBeUndefined();
    const revision = world.store.get(name);
    expect(revision.outOfBand).toBeUndefined();
    expect(revision.tip.facts.statement?.statement.record.breakGlass).toEqual({
      by: 'oncall',
      reason: 'the site is down',
    });
    const [last] = await world.store.history(name);
    expect(last?.what).toContain('approve with closed gates: tested (break-glass)');
    expect(last?.reason).toBe('the site is down');
  });

  test('the request is never kept on the object', async () => {
    const name = await proposed();
    const { client, read } = as('oncall');
    const object = await read(name);
    const annotations = { ...because('later'), mine: 'x' };
    const kept = await client.update(packageRevisionKind, {
      ...object,
      metadata: { ...object.metadata, annotations },
    } as PackageRevision);
    expect(kept.metadata.annotations).toEqual({ mine: 'x' });
    await expect(as('oncall').approve(name)).rejects.toThrow('gate tested is closed');
  });
});

describe('conditions that expire', () => {
  test('close their gate in time, wake the controllers, and are affirmed by giving them again', async () => {
    await policy({
      requiredGates: [{ conditionType: 'tested', approveOnly: true }],
      validFor: [{ conditionType: 'tested', duration: '1h' }],
    });
    const { name } = await world.draft('apps/app/w1', { Kptfile: KPTFILE });
    const give = () => world.store.change(name, { conditions: [{ type: 'tested', status: 'True' }] }, ANNA);
    await give();
    await world.store.update(name, { action: 'propose' }, ANNA);
    const { client, store } = world;
    const recorder = world.recorder('controller:proposal');
    const { reconcile } = proposalController({ client, store, clock, recorder });
    const wake = () => reconcile({ namespace: 'default', name }, CONTEXT);
    expect(await wake()).toEqual({ requeueAfter: 3_600_000, reason: 'a condition expires' });
    clock.advance(3_600_000);
    expect(await wake()).toBeUndefined();
    expect(await world.events(name)).toEqual([
      'GateExpired: gate tested is closed: issued by anna at 2026-01-02T03:04:05Z, which counted until 2026-01-02T04:04:05Z',
    ]);
    await expect(as('berta').approve(name)).rejects.toThrow('which counted until 2026-01-02T04:04:05Z');
    await give();
    expect(await wake()).toMatchObject({ requeueAfter: 3_600_000 });
    expect((await as('berta').approve(name)).spec.lifecycle).toBe('Published');
  });
});
