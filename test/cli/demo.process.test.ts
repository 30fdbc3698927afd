import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sluice } from '../support/cli.ts';

let folder = '';
let data = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-demo-test-'));
  // A path that must be escaped in an address.
  data = join(folder, 'da ta#1');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

function git(repository: string, ...words: string[]): string {
  return execFileSync('git', ['--git-dir', join(data, 'repositories', repository), ...words], {
    encoding: 'utf8',
  }).trim();
}

describe('demo', () => {
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
