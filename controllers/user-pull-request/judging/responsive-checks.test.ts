import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { DEFAULT_POLICY } from '../../../src/package/model/policy/policy.ts';
import { judgePackage } from './judge-package.ts';

const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\n';

test('a file with a mistake in each line is searched for mistakes while other work goes on', async () => {
  const text = 'a: [\n'.repeat(50_000);
  const files = new Map(
    Object.entries({ Kptfile: KPTFILE, 'a.yaml': text }).map(([path, one]) => [path, Buffer.from(one)]),
  );
  const merged = { files, changed: new Set(['a.yaml']), findings: [], isOfHead: true, onMain: undefined };
  let [turns, isOver] = [0, false];
  const judging = judgePackage(merged, {
    ...{ namespace: 'default', renderer: undefined, mayIssue: false, isOfHead: true, now: 0 },
    branch: undefined,
    ...{ policyFor: () => DEFAULT_POLICY, signal: new AbortController().signal },
  }).finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await setImmediate();
    turns += 1;
  }
  expect((await judging).findings.map(({ file, line }) => `${file}:${line}`)).toEqual(['a.yaml:2']);
  expect(turns).toBeGreaterThan(50);
});
