import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { dataFolder } from '../../app/data/data-folder.ts';
import { ObjectSet } from '../../app/data/object-set.ts';
import type { Change } from '../../delivery/dora/change.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { type CliFixture, cliFixture } from '../testing.ts';

const HOUR = 3_600_000;

let cli: CliFixture;

beforeAll(async () => {
  cli = await cliFixture();
  const config = join(cli.folder, 'conf');
  await mkdir(config);
  const target = (name: string, namespace: string, spec: string) =>
    `apiVersion: sluice.dev/v1alpha1\nkind: DeliveryTarget\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: {selector: ${spec}, git: {repo: ${cli.bare(`${name}.git`)}}}\n---\n`;
  await writeFile(
    join(config, 'targets.yaml'),
    target('east', 'default', '{}') + target('west', 'default', '{packages: [none]}'),
  );
  expect((await cli.run('up', '--until-idle', '--no-listen', '--config', config)).code).toBe(0);
});
afterAll(() => cli[Symbol.asyncDispose]());

/** Writes the history that the controller would write. Times in hours before now. */
async function record(target: string, completeFrom: number, changes: readonly Record<string, unknown>[]) {
  const objects = await ObjectSet.open({ folder: dataFolder(cli.data), clock: systemClock, write: true });
  const now = Date.now();
  const at = (hours: unknown) => new Date(now - Number(hours) * HOUR).toISOString();
  try {
    const client = objects.client({ name: 'sluice' });
    const present = await client.get(deliveryTargetKind, { name: target });
    const timed = changes.map(
      (change): Change =>
        Object.fromEntries(
          Object.entries({ repository: 'packages', ...change }).map(([key, value]) => [
            key,
            key.endsWith('At') ? at(value) : value,
          ]),
        ) as never,
    );
    const history = { commit: 'c', observedFrom: at(completeFrom), completeFrom: at(completeFrom), changes: timed };
    await client.updateStatus(deliveryTargetKind, { ...present, status: { ...present.status, history } });
  } finally {
    await objects.close();
  }
}

test('without targets and without changes there is nothing to print but that', async () => {
  expect(await cli.run('dora', '-n', 'empty')).toMatchObject({ code: 0, stdout: '', stderr: 'No targets found\n' });
});

test('prints figures of targets and packages, and "no data" for what there is none of', async () => {
  await record('east', 240, [
    { package: 'web', revision: 1, createdAt: 200, deliveredAt: 150, healthyAt: 148 },
    {
      package: 'web',
      revision: 2,
      createdAt: 100,
      deliveredAt: 98,
      failedAt: 97.5,
      failure: 'Unhealthy',
      restoredAt: 97,
    },
    { package: 'net/upf', revision: 1, createdAt: 60, deliveredAt: 50, healthyAt: 48 },
  ]);
  await record('west', 2400, [{ package: 'web', revision: 1, createdAt: 1000, deliveredAt: 990, healthyAt: 980 }]);
  const rows = async (...words: string[]) => {
    const { stdout, stderr, code } = await cli.run('dora', ...words);
    expect(code).toBe(0);
    return {
      stderr,
      lines: stdout
        .trimEnd()
        .split('\n')
        .map((line) => line.split(/ {3,}/)),
    };
  };
  const noData = Array.from({ length: 7 }, () => 'no data');
  expect(await rows()).toEqual({
    stderr: expect.stringMatching(
      /^target east: its history begins at 20\S+Z, so its figures are of the time since then\n$/,
    ),
    lines: [
      [
        ...['TARGET', 'DEPLOYMENTS', 'PER DAY', 'LEAD TIME P50', 'LEAD TIME P90', 'FAILED CHANGES'],
        ...['TIME TO RESTORE P50', 'TIME TO RESTORE P90'],
      ],
      ['east', '3', '0.3', '12h', '2d4h', '1 of 3 (33%)', '30m', '30m'],
      ['west', ...noData],
      ['(all)', '3', '0.1', '12h', '2d4h', '1 of 3 (33%)', '30m', '30m'],
    ],
  });
  const packages = await rows('--target', 'east', '--by', 'package', '--no-headers');
  expect(packages.lines).toEqual([
    ['east', 'packages/net/upf', '1', '0.1', '12h', '12h', '0 of 1 (0%)', 'no data', 'no data'],
    ['east', 'packages/web', '2', '0.2', '2d4h', '2d4h', '1 of 2 (50%)', '30m', '30m'],
    ['(all)', '3', '0.3', '12h', '2d4h', '1 of 3 (33%)', '30m', '30m'],
  ]);
  expect((await rows('--package', 'packages/net/upf', '--since', '3d', '-A')).lines.slice(1)).toEqual([
    ['default', 'east', '1', '0.333', '12h', '12h', '0 of 1 (0%)', 'no data', 'no data'],
    ['default', 'west', ...noData],
    ['(all)', '1', '0.333', '12h', '12h', '0 of 1 (0%)', 'no data', 'no data'].toSpliced(1, 0),
  ]);
  expect((await cli.run('dora', '--by', 'package', '--package', 'gone')).stderr).toContain('No changes found');
  expect((await cli.run('dora', '-o', 'yaml')).stdout).toContain('p50Seconds: 43200');
});

test('a wrong option is refused with the next step', async () => {
  expect(await cli.run('dora', '--since', 'month')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--since month is no duration; use one such as 12h or 30d'),
  });
  expect(await cli.run('dora', '--target', 'eats')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('did you mean east?'),
  });
  expect((await cli.run('dora', '-A', '--target', 'east')).stderr).toContain('leave out -A');
});
