import { expect, test } from 'vitest';
import { coveringReports, deploymentState, type TreeAt } from './deployment-state.ts';
import { type EngineReport, state } from './engine-report.ts';
import { targetDeployment } from './target-deployment.ts';

const [C1, C2, C3] = ['1', '2', '3'].map((digit) => digit.repeat(40)) as [string, string, string];
const NOW = 1_000_000;
const HEALTHY = state('True', 'Healthy', 'fine');

/** Trees by commit; other commits are unknown. */
const trees =
  (known: Readonly<Record<string, string>>): TreeAt =>
  (commit) =>
    known[commit] ?? 'unknown';

function report(fields: Partial<EngineReport>): EngineReport {
  const common = { object: 'Kustomization flux-system/edge', path: 'edge', applied: undefined, attempt: undefined };
  return { ...common, healthy: HEALTHY, isWorking: false, ...fields };
}

const delivered = { folder: 'edge/web', tree: 'new' };
const evaluate = (reports: readonly EngineReport[], known: Readonly<Record<string, string>>, more = {}) =>
  deploymentState(delivered, reports, { treeAt: trees(known), now: NOW, ...more });

test('an unrelated commit, a squash or a rebase do not matter: the tree counts', () => {
  expect(evaluate([report({ applied: C3 })], { [C3]: 'new' })).toMatchObject({
    synced: { status: 'True', reason: 'Synced' },
    healthy: { status: 'True', message: 'Kustomization flux-system/edge: fine' },
  });
});

test('an older revision after a newer one is out of sync, and its health is not that of the delivery', () => {
  expect(evaluate([report({ applied: C1 })], { [C1]: 'old' })).toMatchObject({
    synced: { status: 'False', reason: 'OutOfSync' },
    healthy: { status: 'Unknown', reason: 'Stale' },
  });
  expect(evaluate([report({ applied: C1 })], { [C1]: 'absent' }).synced.reason).toBe('OutOfSync');
});

test('a commit that the branch does not have supports no statement', () => {
  expect(evaluate([report({ applied: C1 })], {})).toMatchObject({
    synced: { status: 'Unknown', reason: 'UnknownCommit' },
    healthy: { status: 'Unknown', reason: 'UnknownCommit' },
  });
});

test('an attempt counts for the packages that it changes, and not for those whose applied content is the delivered one', () => {
  const failed = report({ applied: C1, attempt: { commit: C2, outcome: 'Failed', message: 'no such CRD' } });
  expect(evaluate([failed], { [C1]: 'old', [C2]: 'new' }).synced).toMatchObject({
    status: 'False',
    reason: 'Failed',
    message: 'Kustomization flux-system/edge: no such CRD',
  });
  expect(evaluate([failed], { [C1]: 'new', [C2]: 'new' }).synced.status).toBe('True');
  const syncing = report({ applied: C1, attempt: { commit: C2, outcome: 'Syncing', message: '' } });
  expect(evaluate([syncing], { [C1]: 'old', [C2]: 'new' }).synced).toMatchObject({
    status: 'Unknown',
    reason: 'Syncing',
  });
});

test('an object above the folder that does not include it supports no statement, however synced and healthy', () => {
  const notReported = {
    status: 'Unknown',
    reason: 'NotReported',
    message: expect.stringContaining('sluice target init'),
  };
  const none = report({ applied: C1, attempt: { commit: C1, outcome: 'Applied', message: '' }, subfolders: 'None' });
  expect(evaluate([none], { [C1]: 'new' })).toMatchObject({ synced: notReported, healthy: notReported });
  expect(evaluate([{ ...none, path: 'edge/web' }], { [C1]: 'new' }).synced.status).toBe('True');
  const listed = { ...none, subfolders: 'Listed' as const };
  const by = (commits: readonly string[]) => ({
    includes: (_: EngineReport, commit: string) => commits.includes(commit),
  });
  expect(evaluate([listed], { [C1]: 'new' }, by([]))).toMatchObject({ synced: notReported, healthy: notReported });
  expect(evaluate([listed], { [C1]: 'new' }, by([C1])).healthy.status).toBe('True');
  // The commit that lists the folder is applied now.
  const next = { ...listed, attempt: { commit: C2, outcome: 'Syncing' as const, message: '' } };
  expect(evaluate([next], { [C1]: 'new', [C2]: 'new' }, by([C2])).synced.reason).toBe('Syncing');
});

test('an earlier application of the delivered content does not count after other content was applied', () => {
  const known = { [C1]: 'new', [C2]: 'failed', [C3]: 'new' };
  const tried = (outcome: 'Applied' | 'Failed' | 'Syncing', commit = C2) =>
    report({ applied: C1, attempt: { commit, outcome, message: '' } });
  expect(evaluate([tried('Applied')], known).synced).toMatchObject({ status: 'False', reason: 'OutOfSync' });
  expect(evaluate([tried('Failed')], known).synced).toMatchObject({ status: 'Unknown', reason: 'Stale' });
  expect(evaluate([tried('Syncing')], known).synced).toMatchObject({ status: 'Unknown', reason: 'Syncing' });
  for (const outcome of ['Applied', 'Failed', 'Syncing'] as const)
    expect(evaluate([tried(outcome)], known).healthy).toMatchObject({ status: 'Unknown', reason: 'Stale' });
  // The engine reads the return, and applies it: until it has, the cluster has the content between.
  const returned = (outcome: 'Applied' | 'Failed' | 'Syncing') => ({ ...tried(outcome, C3), since: [C2] });
  expect(evaluate([returned('Syncing')], known).synced).toMatchObject({ status: 'Unknown', reason: 'Syncing' });
  expect(evaluate([returned('Failed')], known).synced).toMatchObject({ status: 'False', reason: 'Failed' });
  expect(evaluate([returned('Applied')], known).synced).toMatchObject({ status: 'True', reason: 'Synced' });
  // Commits between that do not change the folder do not matter.
  expect(evaluate([{ ...tried('Failed', C3), since: [C1] }], known).synced.status).toBe('True');
});

test('a comparison with the cluster beats an earlier application', () => {
  const drifted = report({ applied: C1, attempt: { commit: C2, outcome: 'OutOfSync', message: 'differs' } });
  expect(evaluate([drifted], { [C1]: 'new', [C2]: 'new' })).toMatchObject({
    synced: { status: 'False', reason: 'OutOfSync' },
    healthy: { status: 'Unknown', reason: 'Stale' },
  });
});

test('applied, and not healthy', () => {
  const value = report({
    attempt: { commit: C2, outcome: 'Applied', message: '' },
    healthy: state('False', 'Degraded', 'Deployment upf not ready: 2/3'),
  });
  expect(evaluate([value], { [C2]: 'new' })).toMatchObject({
    synced: { status: 'True' },
    healthy: { status: 'False', reason: 'Degraded', message: expect.stringContaining('upf not ready: 2/3') },
  });
});

test('while the engine works on other content the last health holds, for a time, and for equal content only', () => {
  const first = evaluate([report({ applied: C1 })], { [C1]: 'new' });
  const progressing = state('Unknown', 'Progressing', '');
  const working = report({
    applied: C1,
    attempt: { commit: C2, outcome: 'Syncing', message: '' },
    healthy: progressing,
    isWorking: true,
  });
  const known = { [C1]: 'new', [C2]: 'new' };
  const { confirmed } = first;
  expect(evaluate([working], known, { confirmed, now: NOW + 60_000 }).healthy.status).toBe('True');
  expect(evaluate([working], known, { confirmed, now: NOW + 300_000 }).healthy.status).toBe('Unknown');
  expect(evaluate([working], known, { confirmed, now: NOW - 1 }).healthy.status).toBe('Unknown');
  expect(evaluate([working], known).healthy.status).toBe('Unknown');
  const other = confirmed && { ...confirmed, tree: 'other' };
  expect(evaluate([working], known, { confirmed: other }).healthy.status).toBe('Unknown');
});

test('the innermost object counts, and the worst of several', () => {
  const whole = report({ path: '' });
  const edge = report({ path: 'edge' });
  const web = report({ path: 'edge/web', object: 'Application argocd/web' });
  const inside = report({ path: 'edge/web/sub' });
  const sibling = report({ path: 'edge/w' });
  const all = [whole, edge, web, inside, sibling];
  expect(coveringReports('edge/web', all)).toEqual([web]);
  expect(coveringReports('edge/db', all)).toEqual([edge]);
  expect(coveringReports('west/db', all)).toEqual([whole]);
  const good = report({ applied: C1 });
  const bad = report({ applied: C1, healthy: state('False', 'Degraded', 'x') });
  expect(evaluate([good, bad], { [C1]: 'new' }).healthy.status).toBe('False');
  expect(evaluate([bad, good], { [C1]: 'new' }).healthy.status).toBe('False');
});

test('without an object that deploys the folder nothing is reported', () => {
  expect(evaluate([], {}).synced).toMatchObject({ status: 'Unknown', reason: 'NotReported' });
  expect(coveringReports('a', [])).toEqual([]);
});

test('packages that no object deploys share a state, so that the status of a large target lists none of them', () => {
  const packages = ['a', 'b', 'c'].map((path) => ({
    ...{ repository: 'packages', package: path },
    ...deploymentState({ folder: `edge/${path}`, tree: 'new' }, [], { treeAt: trees({}), now: NOW }),
  }));
  const options = { delivered: state('True', 'Synced', ''), commit: C1, objects: [], before: undefined, now: 0 };
  const deployment = targetDeployment(packages, options);
  expect(deployment.packages).toBeUndefined();
  expect(deployment.common.synced.message).toContain('sluice target init');
});
