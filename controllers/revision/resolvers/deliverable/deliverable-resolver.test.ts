import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { conditionsOf } from '../../../../kptfile-schema/index.ts';
import { Manager } from '../../../../src/controller/manager.ts';
import { type BuildPackage, packageBuilder } from '../../../../src/delivery/render/build-package.ts';
import { manifestsOf } from '../../../../src/delivery/tree/manifests.ts';
import { systemClock } from '../../../../src/foundation/time/clock.ts';
import { programFolder } from '../../../../src/function/external/testing-programs.ts';
import type { Resolver } from '../../../../src/package/plan/ports/resolver.ts';
import { RevisionStore } from '../../../../src/package/store/revision-store.ts';
import {
  type DeliveryTarget,
  deliveryTargetKind,
} from '../../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { packagePolicyKind } from '../../../../src/resource/kinds/sluice/package-policy.ts';
import { ANNA, type Fixture, fixture } from '../../../../test/support/fixture.ts';
import { outcomeOf } from '../../../../test/support/shop.ts';
import { TargetObjects } from '../../../delivery/target/target-objects.ts';
import { revisionController } from '../../revision-controller.ts';
import { createDeliverabilityCheck, DELIVERABLE_TYPE, describeRefusal } from './deliverability.ts';
import { deliverableResolver } from './deliverable-resolver.ts';

const CONTEXT = { signal: new AbortController().signal, failures: 0 };
const CONFIG_MAP = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\n';
const SECRET = 'apiVersion: v1\nkind: Secret\nmetadata:\n  name: key\nstringData:\n  key: hunter2\n';

let world: Fixture;
let targets: DeliveryTarget[];
let required: string[];
let shipped: TargetObjects;
let buildPackage: BuildPackage;
beforeEach(async () => {
  world = await fixture();
  await world.register('apps');
  targets = [];
  required = [];
  shipped = new TargetObjects();
  buildPackage = packageBuilder({});
});
afterEach(() => world[Symbol.asyncDispose]());

function target(name: string, spec: object = {}, namespace = 'default'): DeliveryTarget {
  const common = { selector: {}, git: { repo: 'file:///site.git' }, ...spec };
  return deliveryTargetKind.complete({ metadata: { name, namespace }, spec: common });
}

function deliverable() {
  const { store } = world;
  const options = {
    targets: () => targets,
    repositoryOf: () => undefined,
    requiredGates: () => required,
    shipped,
    buildPackage,
  };
  return deliverableResolver({ store, ...options });
}

/** Records that a target delivers these packages, each with these files. */
async function ships(to: DeliveryTarget, packages: Record<string, ReadonlyMap<string, Buffer>>): Promise<void> {
  const chosen = Object.entries(packages).map(([name, files]) => {
    const sourceTree = `${name} ${[...files].join()}`;
    const common = { repository: 'apps', package: name, revision: 1, sourceCommit: '', sourceTree, gates: [] };
    return [`apps/${name}`, { ...common, built: manifestsOf(files) }] as const;
  });
  await shipped.set(to, new Map(chosen));
}

async function conditionOf(name: string) {
  const { client, store, clock } = world;
  const { resolver, sources } = deliverable();
  const recorder = world.recorder('controller:revision');
  const controller = revisionController({ ...{ client, store, clock, recorder, sources }, resolvers: [resolver] });
  await controller.reconcile({ namespace: 'default', name }, CONTEXT);
  const { kptfile } = store.get(name);
  return kptfile === undefined ? undefined : conditionsOf(kptfile).get(DELIVERABLE_TYPE);
}

const broken: [string, Record<string, string>, string, string][] = [
  ['broken YAML', { 'cm.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {\n' }, 'InvalidManifest', 'cm.yaml:'],
  ['a kustomization', { 'kustomization.yaml': 'resources: [a.yaml]\n' }, 'OwnBuildFile', 'kustomization.yaml: '],
  ['a chart', { 'Chart.yaml': 'name: x\n' }, 'OwnBuildFile', 'Chart.yaml: '],
  ['a plain Secret', { 'secret.yaml': SECRET }, 'UnencryptedSecret', 'Secret key at secret.yaml:1'],
  ['one object twice', { 'a.yaml': CONFIG_MAP, 'b.yaml': CONFIG_MAP }, 'DuplicateObject', 'b.yaml:1'],
];

test.each(broken)(
  '%s is reported on the draft, with its place, until it is corrected',
  async (_, files, reason, place) => {
    targets = [target('edge')];
    const { name } = await world.draft('apps/web/w1', files);
    const condition = await conditionOf(name);
    expect(condition).toMatchObject({ status: 'False', reason });
    expect(condition?.message).toContain(`edge cannot deliver it: `);
    expect(condition?.message).toContain(place);
    expect(condition?.message).not.toContain('hunter2');
    const { commit } = world.store.get(name);
    await conditionOf(name);
    expect(world.store.get(name).commit).toBe(commit);
    const edits = new Map<string, Buffer | null>(Object.keys(files).map((path) => [path, null]));
    await world.store.change(name, { files: edits.set('cm.yaml', Buffer.from(CONFIG_MAP)) }, ANNA);
    expect(await conditionOf(name)).toBeUndefined();
  },
);

test('a package that can be delivered, or that no target selects, gets no condition', async () => {
  const { name } = await world.draft('apps/web/w1', { 'cm.yaml': CONFIG_MAP });
  const { name: secret } = await world.draft('apps/db/w1', { 'secret.yaml': SECRET });
  const { commit } = world.store.get(name);
  targets = [target('edge')];
  expect(await conditionOf(name)).toBeUndefined();
  expect(world.store.get(name).commit).toBe(commit);
  targets = [
    target('allows', { allowSecrets: true }),
    target('other', { selector: { packages: ['web'] } }),
    target('labels', { selector: { packageSelector: { matchLabels: { a: 'b' } } } }),
    target('elsewhere', {}, 'team'),
  ];
  expect(await conditionOf(secret)).toBeUndefined();
});

test('as a gate it opens when every target can deliver the content, and closes when the content changes', async () => {
  targets = [target('edge')];
  required = [DELIVERABLE_TYPE];
  const { name } = await world.draft('apps/web/w1', { 'cm.yaml': CONFIG_MAP });
  expect(await conditionOf(name)).toMatchObject({ status: 'True', message: 'edge can deliver it' });
  const { record, content } = await world.store.evaluate(name);
  const verdict = record.verdicts.find(({ type }) => type === DELIVERABLE_TYPE);
  expect(verdict).toMatchObject({ by: 'resolver:deliverable', inputs: { content: content.content } });
  await world.store.change(name, { files: new Map([['x.yaml', Buffer.from(SECRET)]]) }, ANNA);
  expect(await conditionOf(name)).toMatchObject({ status: 'False', reason: 'UnencryptedSecret' });
  // The target now allows the Secret.
  targets = [target('edge', { allowSecrets: true })];
  expect(await conditionOf(name)).toMatchObject({ status: 'True' });
  targets = [];
  expect(await conditionOf(name)).toMatchObject({ status: 'True', message: 'no target selects it' });
});

test('a new target wakes the drafts that it may select, and no others', async () => {
  await world.draft('apps/web/w1', { 'secret.yaml': SECRET });
  await world.draft('apps/db/w1', { 'secret.yaml': SECRET });
  const { client, store, clock, manager } = world;
  const { resolver, sources } = deliverable();
  const recorder = world.recorder('controller:revision');
  manager.addController(revisionController({ ...{ client, store, clock, recorder, sources }, resolvers: [resolver] }));
  await manager.start();
  await manager.idle();
  const selector = { packages: ['web'] };
  targets = [target('edge', { selector })];
  await client.create(deliveryTargetKind, {
    metadata: { name: 'edge' },
    spec: { selector, git: { repo: 'file:///site.git' } },
  });
  await expect
    .poll(() => {
      const { kptfile } = store.get('apps.web.w1');
      return kptfile && conditionsOf(kptfile).get(DELIVERABLE_TYPE)?.status;
    })
    .toBe('False');
  const { kptfile } = store.get('apps.db.w1');
  expect(kptfile && conditionsOf(kptfile).has(DELIVERABLE_TYPE)).toBe(false);
});

test('a proposed revision is evaluated again when a target changes, and once more at approval', async () => {
  required = [DELIVERABLE_TYPE];
  const { client, store, clock, manager } = world;
  await client.create(packagePolicyKind, {
    metadata: { name: 'deliverable' },
    spec: { requiredGates: [{ conditionType: DELIVERABLE_TYPE }] },
  });
  const { name } = await world.draft('apps/web/w1', { 'secret.yaml': SECRET });
  const recorder = world.recorder('controller:revision');
  const { resolver, sources } = deliverable();
  manager.addController(revisionController({ ...{ client, store, clock, recorder, sources }, resolvers: [resolver] }));
  await manager.start();
  const statusNow = () => {
    const { kptfile } = store.get(name);
    return kptfile && conditionsOf(kptfile).get(DELIVERABLE_TYPE)?.status;
  };
  await expect.poll(statusNow).toBe('True');
  await expect.poll(() => outcomeOf(store.update(name, { action: 'propose' }, ANNA))).toBe('succeeded');

  // The controller has not been woken yet, and the condition is still True.
  targets = [target('edge')];
  const { check } = createDeliverabilityCheck({ targets: () => targets, repositoryOf: () => undefined });
  const approvals = new RevisionStore({
    approvalProblem: async (revision, files) => {
      const message = describeRefusal(check(revision, files));
      return message === undefined ? undefined : { type: DELIVERABLE_TYPE, message };
    },
  });
  await approvals.add(store.repository('apps'));
  expect(statusNow()).toBe('True');
  expect(await outcomeOf(approvals.update(name, { action: 'approve' }, ANNA))).toMatch(
    /^Refused: gate sluice\.dev\/Deliverable is closed now: edge cannot deliver it: Secret key at secret\.yaml:1/,
  );

  await client.create(deliveryTargetKind, {
    metadata: { name: 'edge' },
    spec: { selector: {}, git: { repo: 'file:///site.git' } },
  });
  await expect.poll(statusNow).toBe('False');
  expect(store.get(name).lifecycle).toBe('Proposed');
});

test('an object that another package of the target ships is reported, with its place and that package', async () => {
  targets = [target('edge')];
  const { name } = await world.draft('apps/web/w1', { 'cm.yaml': CONFIG_MAP });
  const revision = world.store.get(name);
  const { files } = await world.store.content(name);
  const { check } = createDeliverabilityCheck({
    targets: () => targets,
    repositoryOf: () => undefined,
    packagesOf: (to, identity) => shipped.packagesOf(to, identity),
  });
  // Its own earlier revision ships it as well.
  await ships(target('edge'), { web: files });
  expect(check(revision, files).refusal).toBeUndefined();
  await ships(target('edge'), { web: files, db: files });
  expect(describeRefusal(check(revision, files))).toMatch(
    /^edge would deliver the same object of two packages: ConfigMap web at cm\.yaml:1 is shipped to target edge/,
  );
  expect(check(revision, files).refusal).toMatchObject({
    reason: 'DuplicateObject',
    message: expect.stringMatching(
      /^ConfigMap web at cm\.yaml:1 is shipped to target edge by package apps\/db already/,
    ),
  });
  shipped.forget(target('edge'));
  expect(check(revision, files).refusal).toBeUndefined();
});

describe('a delivery that changes what a target ships', () => {
  const SERVICE = 'apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n';
  const oneFile = (text: string) => new Map([['a.yaml', Buffer.from(text)]]);
  const status = (name: string) => {
    const { kptfile } = world.store.get(name);
    return (kptfile && conditionsOf(kptfile).get(DELIVERABLE_TYPE)?.status) ?? 'none';
  };

  test('wakes exactly the drafts and proposals with an object that another package starts or stops shipping', async () => {
    const edge = target('edge');
    targets = [edge, target('far', { selector: { packages: ['other'] } })];
    const { store, client, clock, manager } = world;
    const { name } = await world.draft('apps/web/w1', { 'cm.yaml': CONFIG_MAP });
    await world.draft('apps/other/w1', { 'svc.yaml': SERVICE });
    const proposed = await world.draft('apps/late/w1', { 'cm.yaml': CONFIG_MAP, 'x.yaml': SERVICE });
    await store.update(proposed.name, { action: 'propose' }, ANNA);
    const woken: string[] = [];
    const { resolver, sources } = deliverable();
    const counted: Resolver = {
      ...resolver,
      applies: (subject) => {
        woken.push(subject.revision.name);
        return resolver.applies(subject);
      },
    };
    const recorder = world.recorder('controller:revision');
    const options = { client, store, clock, recorder, sources, resolvers: [counted] };
    manager.addController(revisionController(options));
    await manager.start();
    await manager.idle();
    expect(status(name)).toBe('none');

    woken.length = 0;
    await ships(edge, { db: oneFile(CONFIG_MAP) });
    await manager.idle();
    expect([status(name), status(proposed.name)]).toEqual(['False', 'False']);
    expect(new Set(woken)).toEqual(new Set([name, proposed.name]));

    // The same objects, those of the own package, and another target affect no draft.
    woken.length = 0;
    await ships(edge, { db: oneFile(`# other\n${CONFIG_MAP}`), web: oneFile(CONFIG_MAP) });
    await ships(target('far'), { db: oneFile(CONFIG_MAP) });
    await manager.idle();
    expect(woken).toEqual([]);

    await ships(edge, { db: oneFile(SERVICE), web: oneFile(CONFIG_MAP) });
    await manager.idle();
    expect([status(name), status('apps.other.w1'), status(proposed.name)]).toEqual(['none', 'False', 'False']);
    await ships(edge, {});
    await manager.idle();
    expect([status('apps.other.w1'), status(proposed.name)]).toEqual(['none', 'none']);
  });

  test('confirms or withdraws a condition of an earlier process, which stays until then', async () => {
    const edge = target('edge');
    targets = [edge];
    const { store, client, clock } = world;
    const { name } = await world.draft('apps/web/w1', { 'cm.yaml': CONFIG_MAP });
    await ships(edge, { db: oneFile(CONFIG_MAP) });
    await conditionOf(name);
    expect(status(name)).toBe('False');
    const { commit } = store.get(name);

    const restarted = async () => {
      shipped = new TargetObjects();
      const { resolver, sources } = deliverable();
      const recorder = world.recorder('controller:revision');
      const manager = new Manager({ client, clock });
      manager.addController(revisionController({ client, store, clock, recorder, sources, resolvers: [resolver] }));
      await manager.start();
      await manager.idle();
      return manager;
    };
    const second = await restarted();
    expect(store.get(name).commit).toBe(commit);
    await ships(edge, { db: oneFile(CONFIG_MAP) });
    await second.idle();
    expect(store.get(name).commit).toBe(commit);
    await second.stop();
    const third = await restarted();
    await ships(edge, { db: oneFile(SERVICE) });
    await third.idle();
    expect(status(name)).toBe('none');
    await third.stop();
  });
});

describe('several targets with different settings', () => {
  const KUSTOMIZATION = { 'kustomization.yaml': 'resources: [cm.yaml]\n', 'cm.yaml': CONFIG_MAP };

  test('each target counts, and the message names those that refuse', async () => {
    const secret = 'apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\n';
    const { name } = await world.draft('apps/web/w1', { 'secret.yaml': secret });
    targets = [
      target('lenient', { allowSecrets: true }),
      target('strict'),
      target('other', { selector: { packages: ['db'] } }),
    ];
    expect(await conditionOf(name)).toMatchObject({
      ...{ status: 'False', reason: 'UnencryptedSecret' },
      message: expect.stringMatching(/^strict cannot deliver it: Secret s at secret\.yaml:1/),
    });
    targets = [target('lenient', { allowSecrets: true })];
    expect(await conditionOf(name)).toBeUndefined();
  });

  test('a kustomization is deliverable to targets that render it or pass it on, and to no others', async () => {
    await using programs = await programFolder();
    const { name } = await world.draft('apps/web/w1', KUSTOMIZATION);
    const outcomes: unknown[] = [];
    for (const modes of [
      ['passthrough'],
      ['passthrough', 'none'],
      ['kustomize', 'none'],
      ['kustomize', 'passthrough'],
    ]) {
      targets = modes.map((render) => target(render, { render }));
      outcomes.push((await conditionOf(name))?.message ?? 'none');
    }
    expect(outcomes).toEqual([
      'none',
      expect.stringMatching(/^none cannot deliver it: kustomization\.yaml: cannot deliver the output/),
      expect.stringMatching(
        /^kustomize cannot deliver it: .*start it with --kustomize <path of the program>; none cannot deliver it: kustomization\.yaml/,
      ),
      expect.stringMatching(/^kustomize cannot deliver it: .*start it with --kustomize <path of the program>$/),
    ]);
    const program = `${programs.path}/kustomize`;
    await programs.add('kustomize', 'echo "it is wrong" >&2; exit 1');
    const limits = { time: 20_000, outputBytes: 1024, memoryBytes: 256 * 1024 * 1024, clock: systemClock };
    buildPackage = packageBuilder({ kustomize: { ...limits, program } });
    expect(await conditionOf(name)).toMatchObject({
      ...{ status: 'False', reason: 'RenderFailed' },
      message: 'kustomize cannot deliver it: kustomize failed: it is wrong',
    });
    await programs.add('kustomize', `printf '${CONFIG_MAP.replaceAll('\n', '\\n')}'`);
    buildPackage = packageBuilder({ kustomize: { ...limits, program } });
    expect(await conditionOf(name)).toBeUndefined();
  });
});
