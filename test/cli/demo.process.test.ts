import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sluice } from '../support/cli.ts';

let folder = '';
let data = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-demo-test-'));
  // A path that must be escaped in an address.
  data = join(folder, 'da ta#1');
});
afterEach(() => rm(folder, { recursive: true, force: true }));

function git(repository: string, ...words: string[]): string {
  return execFileSync('git', ['--git-dir', join(data, 'repositories', repository), ...words], {
    encoding: 'utf8',
  }).trim();
}

describe('demo', () => {
  test('moves the packages of the quick start as far as possible, reports it, and ends', async () => {
    const { code, stdout, stderr } = await sluice(['demo', '--data', data]);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/packages\.upf-edge\.v1 +gate ipam\S+upf-edge-n6 open, by resolver:ipam: .*10\.6\.1\.2\/24/);
    expect(stdout).toMatch(/packages\.upf-edge\.v1 +Draft → Proposed, by controller:/);
    expect(stdout).toMatch(/packages\.upf-edge\.v1 +Proposed → Published v1, by controller:approval/);
    expect(stdout).not.toMatch(/NotProposed|NotApproved/);
    expect(stdout).toMatch(/target edge-east +delivered in commit [0-9a-f]{40}: /);
    expect(stdout).toMatch(
      /packages\.web-shop\.v1.* Proposed\n +gate shop\.example\.com\/CapacityReviewed: the condition has not been set yet/,
    );
    expect(git('packages.git', 'tag').split('\n')).toEqual(['edge-monitoring/v1', 'upf-edge/v1']);
    expect(git('edge-east.git', 'show', 'main:upf-edge/ipclaim-n6.yaml')).toContain('prefix: 10.6.1.2/24');
    for (const name of ['packages.git', 'edge-east.git', 'edge-west.git']) git(name, 'fsck', '--strict');
  });

  test('the proposed commands work, and a second run continues where the first ended', async () => {
    const words = ['--data', data];
    expect((await sluice(['demo', ...words])).code).toBe(0);
    const type = 'shop.example.com/CapacityReviewed';
    const why = await sluice(['why', 'packages.web-shop.v1', ...words]);
    expect(why.stdout).toContain(`sluice rpkg condition set packages.web-shop.v1 ${type} True --data '${data}'`);
    expect((await sluice(['rpkg', 'condition', 'set', 'packages.web-shop.v1', type, 'True', ...words])).code).toBe(0);
    const approve = await sluice(['rpkg', 'approve', 'packages.web-shop.v1', ...words]);
    expect(approve).toMatchObject({ code: 0, stdout: 'packages.web-shop.v1 approved\n' });
    const again = await sluice(['demo', ...words]);
    expect(again.code).toBe(0);
    const fleet = await sluice(['demo', 'fleet', ...words]);
    expect(fleet).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('has repositories already, and the demo needs a new data folder'),
    });
    expect(again.stdout).not.toContain('draft pushed');
    expect(again.stdout).toContain('No revision waits.');
    expect(git('edge-west.git', 'ls-tree', '--name-only', 'main').split('\n')).toEqual(['edge-monitoring', 'web-shop']);
    const delivered = await sluice(['why', 'packages.web-shop.v1', ...words]);
    expect(delivered.stdout).toMatch(/edge-west: Delivered commit [0-9a-f]{12}/);
  });
});
