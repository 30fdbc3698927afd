import { beforeEach, expect, test } from 'vitest';
import { git } from '../../../test/support/git/git-cli.ts';
import { writeCommit, writeRef } from '../../../test/support/git/write-objects.ts';
import {
  eachUserPulls,
  GATE,
  GATES,
  KPTFILE,
  MAP,
  TESTED,
  type UserPullBench,
} from '../../../test/support/user-pull-bench.ts';

const OPEN = 'success: 1 package checked: no errors, no closed gates';
const CLOSED = `pending: 1 gate closed: ${GATE} of web`;
const OTHER = `${MAP}data:\n  color: red\n`;
const AGAIN = TESTED.replace('status: "True"', 'status: "True"\n      reason: Again');

const open = eachUserPulls();
let at: UserPullBench;
beforeEach(async () => {
  at = open();
  await at.policy({ publishOn: 'merge' });
});

/** Pushes a commit to the branch, and returns the title of its check. */
async function push(files: Readonly<Record<string, string | null>>, isFirst = false): Promise<string | undefined> {
  const commit = await at.pull(files, { onTop: !isFirst });
  await at.poll();
  return at.titles(commit)['sluice/ready'];
}

async function merge(style: 'merge' | 'squash' | 'rebase'): Promise<string | undefined> {
  await at.merge(1, 'bob', style);
  for (let turn = 0; turn < 2; turn += 1) await at.poll();
  return at.world.store.get('apps.web.merge-1').outOfBand?.reason;
}

test.each(['merge', 'squash', 'rebase'] as const)(
  'a condition in the branch does not count for what was pushed to the branch after it (%s)',
  async (style) => {
    expect(await push({ 'web/Kptfile': KPTFILE(GATES, TESTED), 'web/map.yaml': MAP }, true)).toBe(OPEN);
    expect(await push({ 'web/map.yaml': OTHER })).toBe(CLOSED);
    expect(await merge(style)).toBe('GateUnmet');
  },
);

test.each(['merge', 'squash', 'rebase'] as const)(
  'one that is set again counts, and so does one of the same content with other gates or other packages (%s)',
  async (style) => {
    await push({ 'web/Kptfile': KPTFILE(GATES, TESTED), 'web/map.yaml': MAP }, true);
    await push({ 'web/map.yaml': OTHER });
    expect(await push({ 'web/Kptfile': KPTFILE(GATES, AGAIN) })).toBe(OPEN);
    const seen = `${AGAIN}    - type: example.com/Seen\n      status: "True"\n`;
    const two = `${GATES}    - conditionType: example.com/Seen\n`;
    expect(await push({ 'web/Kptfile': KPTFILE(two, seen) })).toBe(OPEN);
    expect(await push({ 'README.md': 'about\n' })).toBe(OPEN);
    expect(await merge(style)).toBeUndefined();
  },
);

test('content that is taken back has the condition again that was set for it', async () => {
  await push({ 'web/Kptfile': KPTFILE(GATES, TESTED), 'web/map.yaml': MAP }, true);
  expect(await push({ 'web/map.yaml': OTHER })).toBe(CLOSED);
  expect(await push({ 'web/map.yaml': MAP })).toBe(OPEN);
});

test('a condition about an object counts for later changes of other objects', async () => {
  const gate = 'apps/v1.Deployment.web';
  const deployment = 'apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: 1\n';
  const kptfile = KPTFILE(GATES.replace(GATE, gate), TESTED.replace(GATE, gate));
  const files = { 'web/Kptfile': kptfile, 'web/map.yaml': MAP, 'web/deployment.yaml': deployment };
  expect(await push(files, true)).toBe(OPEN);
  expect(await push({ 'web/map.yaml': OTHER })).toBe(OPEN);
  expect(await push({ 'web/deployment.yaml': deployment.replace('1\n', '2\n') })).toBe(CLOSED.replace(GATE, gate));
});

test('a condition that no near commit has set does not count', async () => {
  await push({ 'web/Kptfile': KPTFILE(GATES, TESTED), 'web/map.yaml': MAP }, true);
  let head = git(at.path, ['rev-parse', 'refs/heads/feature']);
  const tree = git(at.path, ['rev-parse', `${head}^{tree}`]);
  for (let count = 0; count < 501; count += 1) head = writeCommit(at.path, { tree, parents: [head], message: 'x\n' });
  writeRef(at.path, 'refs/heads/feature', head);
  await at.world.store.repository('apps').refresh();
  at.forge.change(1, { head: { branch: 'feature', commit: head, isSameRepository: true } });
  await at.poll();
  expect(at.titles(head)['sluice/ready']).toBe(CLOSED);
});
