import { beforeEach, describe, expect, test } from 'vitest';
import { initRepository } from '../../../src/git/open/open-repository.ts';
import { commitFiles } from '../../../test/support/scratch-repository.ts';
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
const OTHER_MAP = `${MAP}data:\n  color: red\n`;

describe('conditions that the main branch has before a pull request of a user', () => {
  const open = eachUserPulls();
  let at: UserPullBench;
  beforeEach(async () => {
    at = open();
    await at.policy({ publishOn: 'merge' });
  });
  const outOfBand = (number: number) => at.world.store.get(`apps.web.merge-${number}`).outOfBand?.reason;
  const ready = (commit: string) => at.titles(commit)['sluice/ready'];
  let branches = 0;
  async function check(files: Readonly<Record<string, string | null>>, isFork = false): Promise<string | undefined> {
    branches += 1;
    const commit = await at.pull(files, { branch: `branch-${branches}`, isFork });
    await at.poll();
    return ready(commit);
  }
  async function merge(number: number): Promise<string | undefined> {
    await at.merge(number, 'bob');
    for (let turn = 0; turn < 2; turn += 1) await at.poll();
    return outOfBand(number);
  }

  test('count for what they were issued for: the check says what the merge becomes', async () => {
    expect(await check({ 'web/Kptfile': KPTFILE(GATES, TESTED), 'web/map.yaml': MAP })).toBe(OPEN);
    expect(await merge(1)).toBeUndefined();
    expect(await check({ 'web/map.yaml': OTHER_MAP })).toBe(`pending: 1 gate closed: ${GATE} of web`);
    expect(await merge(2)).toBe('GateUnmet');
    // Set again, for the content that it comes with.
    const again = TESTED.replace('status: "True"', 'status: "True"\n      reason: Again');
    expect(await check({ 'web/Kptfile': KPTFILE(GATES, again), 'web/map.yaml': `${OTHER_MAP}  size: "2"\n` })).toBe(
      OPEN,
    );
    expect(await merge(3)).toBeUndefined();
    // Another gate is no other content.
    const two = `${GATES}    - conditionType: example.com/Seen\n`;
    const seen = `${again}    - type: example.com/Seen\n      status: "True"\n`;
    expect(await check({ 'web/Kptfile': KPTFILE(two, seen) })).toBe(OPEN);
    expect(await merge(4)).toBeUndefined();
  });

  test('written by a fork count for no other pull request', async () => {
    const files = { 'web/Kptfile': KPTFILE(GATES, TESTED), 'web/map.yaml': MAP };
    expect(await check(files, true)).toBe(`pending: 1 gate closed: ${GATE} of web`);
    expect(await merge(1)).toBe('GateUnmet');
    expect(await check({ 'web/map.yaml': OTHER_MAP })).toBe(`pending: 1 gate closed: ${GATE} of web`);
    expect(await merge(2)).toBe('GateUnmet');
  });

  test('about one object count while that is the same', async () => {
    const gate = 'apps/v1.Deployment.web';
    const deployment = 'apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: 1\n';
    const kptfile = KPTFILE(GATES.replace(GATE, gate), TESTED.replace(GATE, gate));
    const files = { 'web/Kptfile': kptfile, 'web/map.yaml': MAP, 'web/deployment.yaml': deployment };
    expect(await check(files)).toBe(OPEN);
    expect(await merge(1)).toBeUndefined();
    expect(await check({ 'web/map.yaml': OTHER_MAP })).toBe(OPEN);
    expect(await merge(2)).toBeUndefined();
    expect(await check({ 'web/deployment.yaml': deployment.replace('1\n', '2\n') })).toBe(
      `pending: 1 gate closed: ${gate} of web`,
    );
    expect(await merge(3)).toBe('GateUnmet');
  });

  test('count in a merge queue for what is before in the queue', async () => {
    const waiting: { number: number; commit: string; branch: string }[] = [];
    Object.assign(at.forge, {
      mergeQueue: { waiting: async () => ({ merges: waiting, isComplete: true }), treeOf: async () => undefined },
    });
    const files = { 'web/Kptfile': KPTFILE(GATES, TESTED), 'web/map.yaml': MAP };
    await check(files);
    await check({ ...files, 'web/Kptfile': KPTFILE(GATES, TESTED.replace('True', 'False')) });
    const git = await initRepository(at.path);
    let from = 'refs/heads/main';
    for (const [number, some] of [files, { 'web/map.yaml': OTHER_MAP }].entries()) {
      const branch = `gh-readonly-queue/main/pr-${number + 1}-${'a'.repeat(40)}`;
      const commit = await commitFiles(git, some, at.clock.now(), { branch, from });
      waiting.push({ number: number + 1, commit, branch });
      at.forge.change(number + 1, {});
      from = `refs/heads/${branch}`;
    }
    await git.close();
    for (let turn = 0; turn < 3; turn += 1) await at.poll();
    expect(waiting.map(({ commit }) => ready(commit))).toEqual([OPEN, `pending: 1 gate closed: ${GATE} of web`]);
  });
});
