import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { dataFolder } from '../../app/data/data-folder.ts';
import { ObjectSet } from '../../app/data/object-set.ts';
import { packageDeliveryOf } from '../../delivery/delivered/delivered-package.ts';
import { targetDeployment } from '../../delivery/status/target-deployment.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { type DeliveryTarget, deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { packageDeliveryKind } from '../../resource/kinds/sluice/delivery/package-delivery.ts';
import { setCondition } from '../../resource/object/condition.ts';
import { keyOf } from '../../resource/object/object.ts';
import { completeNames } from '../completion/complete-names.ts';
import { type CliFixture, cliFixture } from '../testing.ts';

const COMMIT = 'c'.repeat(40);
const good = { status: 'True', reason: 'Synced', message: '' } as const;
const bad = { status: 'False', reason: 'Degraded', message: 'Deployment upf\u001b[31m not ready: 2/3' } as const;

let cli: CliFixture;
beforeEach(async () => {
  cli = await cliFixture();
  await mkdir(join(cli.folder, 'conf'));
  await writeFile(
    join(cli.folder, 'conf', 'targets.yaml'),
    ['edge-east', 'edge-west']
      .map(
        (name) =>
          `apiVersion: sluice.dev/v1alpha1\nkind: DeliveryTarget\nmetadata: {name: ${name}}\nspec:\n  selector: {packages: [none]}\n  git: {repo: ${cli.bare(`${name}.git`)}}\n${name === 'edge-east' ? '  engine: {type: Flux}\n' : ''}---\n`,
      )
      .join(''),
  );
  expect((await cli.run('up', '--until-idle', '--config', join(cli.folder, 'conf'))).code).toBe(0);
});
afterEach(() => cli[Symbol.asyncDispose]());

/** Writes the status that the controllers would write. */
async function report(upf: typeof good | typeof bad, commit = COMMIT): Promise<void> {
  const objects = await ObjectSet.open({ folder: dataFolder(cli.data), clock: systemClock, write: true });
  try {
    const client = objects.client({ name: 'sluice' });
    const target = await client.get(deliveryTargetKind, { name: 'edge-east' });
    const packages = ['amf', 'upf'].map((path) => ({
      repository: 'apps',
      package: path,
      revision: 1,
      commit: 'c',
      tree: 't',
    }));
    const states = packages.map((one) => ({ ...one, synced: good, healthy: one.package === 'upf' ? upf : good }));
    const deployment = targetDeployment(states, {
      ...{ delivered: good, commit, objects: [], before: undefined, now: Date.now() },
    });
    for (const one of packages) {
      const object = packageDeliveryOf(target, one, one.package, new Date().toISOString());
      if ((await client.find(packageDeliveryKind, keyOf(object))) === undefined)
        await client.create(packageDeliveryKind, object);
    }
    const observedGeneration = target.metadata.generation ?? 0;
    const ready = {
      type: 'Ready',
      status: 'True',
      reason: 'Delivered',
      message: '2 packages',
      observedGeneration,
    } as const;
    const conditions = setCondition(undefined, ready, Date.now());
    const status = { lastCommit: COMMIT, packageCount: packages.length, deployment, conditions: [...conditions] };
    await client.updateStatus(deliveryTargetKind, { ...target, status });
  } finally {
    await objects.close();
  }
}

test('get prints targets and packages, and objects as data', async () => {
  await report(bad);
  const { stdout, code } = await cli.run('target', 'get');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^NAME +PACKAGES +DELIVERED +SYNCED +HEALTHY +SINCE +MESSAGE$/m);
  expect(stdout).toMatch(
    /^edge-east +2 +True +True +False +\d+s +1 of 2 packages are healthy; upf: Deployment upf .*2\/3$/m,
  );
  expect(stdout).toMatch(/^edge-west +0 +\S+ +- +- +- +without spec\.engine nothing reports whether it is synced$/m);
  expect(stdout).not.toContain('\u001b[31m');
  expect((await cli.run('target', 'get', 'edge-east', '--packages')).stdout.split('\n')).toHaveLength(4);
  const unhealthy = await cli.run('target', 'get', '--unhealthy', '--no-headers');
  expect(unhealthy.stdout).toMatch(/^edge-east +apps\/upf +v1 +True +False +\d+s +Deployment upf .*2\/3\n$/);
  const data = JSON.parse((await cli.run('target', 'get', 'edge-east', '-o', 'json')).stdout);
  expect(data).toMatchObject({ kind: 'DeliveryTarget', status: { deployment: { healthy: { status: 'False' } } } });
  expect((await cli.run('target', 'get', '-o', 'yaml')).stdout).toContain('kind: List');
});

test('packages that the status does not know yet have no state', async () => {
  await report(good);
  const rows = () => cli.run('target', 'get', 'edge-east', '--packages', '--no-headers');
  expect((await rows()).stdout).toMatch(/^edge-east +apps\/upf +v1 +True +True /m);
  // As after the objects of the next delivery and before its status.
  await change((target) => ({ ...target, status: { ...target.status, packagesDigest: 'of the delivery before' } }));
  expect((await rows()).stdout).toMatch(/^edge-east +apps\/upf +v1 +- +- +-$/m);
});

test('a target that does not exist is an error with similar names', async () => {
  const { code, stderr } = await cli.run('target', 'get', 'edge-eats');
  expect(code).not.toBe(0);
  expect(stderr).toContain('did you mean edge-east');
});

test('watch ends at the state, and with exit code 1 without it in time', async () => {
  await report(bad);
  expect(await cli.run('target', 'watch', 'edge-east', '--until', 'synced')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /^\S+ {2}2 packages, delivered True, synced True, healthy False: 1 of 2 packages are healthy/,
    ),
  });
  const late = await cli.run('target', 'watch', 'edge-east', '--until', 'healthy', '--timeout', '10ms');
  expect(late).toMatchObject({ code: 1, stderr: expect.stringContaining('is not healthy within 10ms') });
  await report(good);
  const done = await cli.run('target', 'watch', 'edge-east', '--until', 'healthy', '-o', 'json');
  expect(done.code).toBe(0);
  expect(JSON.parse(done.stdout)).toMatchObject({ kind: 'DeliveryTarget' });
  // What is healthy is not what the target selects.
  await change((target) => ({
    ...target,
    status: {
      ...target.status,
      conditions: [...setCondition(undefined, { type: 'Ready', status: 'False', reason: 'Suspended', message: '' }, 0)],
    },
  }));
  const suspended = await cli.run('target', 'watch', 'edge-east', '--until', 'healthy', '--timeout', '10ms');
  expect(suspended).toMatchObject({ code: 1, stderr: expect.stringContaining('is not healthy within 10ms') });
  expect(
    await cli.run('target', 'watch', 'edge-east', '--until', 'healthy', '--revision', 'apps.upf.v2'),
  ).toMatchObject({ code: 1, stderr: expect.stringContaining('package revision "apps.upf.v2" not found') });
  // A report about an earlier delivery does not count.
  await report(good, 'd'.repeat(40));
  const outdated = await cli.run('target', 'watch', 'edge-east', '--until', 'healthy', '--timeout', '10ms');
  expect(outdated.code).toBe(1);
  expect((await cli.run('target', 'watch', 'edge-west', '--until', 'synced')).stderr).toContain('set it first');
  expect((await cli.run('target', 'watch', 'edge-east', '--timeout', 'soon')).code).toBe(2);
});

test('watch waits for a revision that the target has to deliver', async () => {
  await cli.run('repo', 'reg', cli.bare('apps.git'), '--name', 'apps');
  await cli.run('rpkg', 'init', 'upf', '--repository', 'apps', '--workspace', 'w1');
  const watch = () =>
    cli.run('target', 'watch', 'edge-east', '--revision', 'apps.upf.w1', '--until', 'healthy', '--timeout', '300ms');
  await report(good);
  expect(await watch()).toMatchObject({ code: 1, stderr: expect.stringContaining('it is a Draft') });
  await cli.run('rpkg', 'propose', 'apps.upf.w1');
  expect((await cli.run('rpkg', 'approve', 'apps.upf.w1')).code).toBe(0);
  expect(await watch()).toMatchObject({ code: 0 });
  await report(bad);
  expect(await watch()).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('apps.upf.w1 on target edge-east is not healthy within 300ms'),
  });
});

test('rollbacks are shown, and resume ends those that are named', async () => {
  await report(bad);
  const refused = await cli.run('target', 'resume', 'edge-east');
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('it delivers its last revisions already') });
  const rollback = {
    repository: 'apps',
    package: 'upf',
    from: 2,
    to: 1,
    time: '2026-01-01T00:00:00Z',
    reason: 'Degraded',
  };
  await change((target) => ({ ...target, status: { ...target.status, rollbacks: [rollback] } }));
  expect((await cli.run('target', 'get', '--packages')).stdout).toContain(
    'apps/upf v2 failed, so v1 is delivered: Degraded',
  );
  const other = await cli.run('target', 'resume', 'edge-east', 'amf');
  expect(other).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('edge-east has no rollback of amf; there are rollbacks of apps/upf'),
  });
  const drifted = {
    type: 'Drifted',
    status: 'True',
    reason: 'ChangedByOthers',
    message: 'another writer\nsecond',
  } as const;
  await change((target) => ({
    ...target,
    status: { ...target.status, conditions: [...setCondition(target.status?.conditions, drifted, 0)] },
  }));
  const { stdout: drift } = await cli.run('target', 'get');
  expect(drift).toContain('Drifted: another writer; apps/upf v2 failed');
  expect(await cli.run('target', 'resume', 'edge-east', 'upf')).toMatchObject({
    ...{ code: 0, stdout: 'apps/upf: v2 will be delivered again instead of v1\n' },
  });
  const { stdout } = await cli.run('target', 'get', 'edge-east', '-o', 'yaml');
  expect(stdout).toContain('sluice.dev/resume: apps/upf@v2');
});

async function change(next: (target: DeliveryTarget) => DeliveryTarget): Promise<void> {
  const objects = await ObjectSet.open({ folder: dataFolder(cli.data), clock: systemClock, write: true });
  try {
    const client = objects.client({ name: 'sluice' });
    await client.updateStatus(deliveryTargetKind, next(await client.get(deliveryTargetKind, { name: 'edge-east' })));
  } finally {
    await objects.close();
  }
}

test('names of targets are completed', async () => {
  const complete = (current: string, ...line: string[]) =>
    completeNames('targets', current, [...line, '--data', cli.data, current], {});
  expect(await complete('', 'target', 'get')).toEqual(['edge-east', 'edge-west']);
  expect(await complete('edge-w', 'rpkg', 'preview', 'apps.web.v1', '--target')).toEqual(['edge-west']);
  expect(await complete('', 'target', 'get', '--namespace', 'other')).toEqual([]);
});
