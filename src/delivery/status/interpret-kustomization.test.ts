import { expect, test } from 'vitest';
import { interpretKustomization } from './interpret-kustomization.ts';

const A = 'a'.repeat(40);
const B = 'b'.repeat(40);
const at = (commit: string) => `main@sha1:${commit}`;

function kustomization(
  ready: [status: string, reason: string, message?: string] | undefined,
  status: object = {},
  spec: object = {},
) {
  const [value, reason, message = reason] = ready ?? [];
  const conditions =
    ready === undefined ? [] : [{ type: 'Ready', status: value, reason, message, observedGeneration: 2 }];
  return {
    metadata: { name: 'edge', namespace: 'flux-system', generation: 2 },
    spec: { path: './clusters/edge', wait: true, ...spec },
    status: { observedGeneration: 2, lastAppliedRevision: at(A), lastAttemptedRevision: at(A), conditions, ...status },
  };
}

test('a revision that Flux applied with its health checks is applied and healthy', () => {
  expect(interpretKustomization(kustomization(['True', 'ReconciliationSucceeded']))).toMatchObject({
    object: 'Kustomization flux-system/edge',
    path: 'clusters/edge',
    applied: A,
    attempt: { commit: A, outcome: 'Applied' },
    healthy: { status: 'True', reason: 'Healthy' },
    isWorking: false,
  });
});

test('without health checks Flux reports no health, and the message names the setting', () => {
  const report = interpretKustomization(kustomization(['True', 'ReconciliationSucceeded'], {}, { wait: false }));
  expect(report).toMatchObject({ applied: A, healthy: { status: 'Unknown', reason: 'NotReported' } });
  expect(report?.healthy.message).toContain('spec.wait: true');
});

test.each(['BuildFailed', 'ArtifactFailed', 'PruneFailed', 'ReconciliationFailed'])(
  'an attempted revision that is not applied failed (%s); the earlier one stays applied',
  (reason) => {
    const value = kustomization(['False', reason, 'broken'], { lastAttemptedRevision: at(B) });
    expect(interpretKustomization(value)).toMatchObject({
      applied: A,
      attempt: { commit: B, outcome: 'Failed', message: 'broken' },
      healthy: { status: 'Unknown', reason: 'Stale' },
    });
    // The cluster may no longer be as after the earlier application.
    const again = interpretKustomization(kustomization(['False', reason, 'broken']));
    expect(again).toMatchObject({ applied: undefined, attempt: { commit: A, outcome: 'Failed' } });
  },
);

test('a revision whose health checks failed is applied and not healthy', () => {
  const value = kustomization(['False', 'HealthCheckFailed', 'Deployment upf not ready: 2/3'], {
    lastAttemptedRevision: at(B),
  });
  expect(interpretKustomization(value)).toMatchObject({
    attempt: { commit: B, outcome: 'Applied' },
    healthy: { status: 'False', reason: 'Degraded', message: 'Deployment upf not ready: 2/3' },
  });
});

test('a revision is applied once its health checks run, and not before', () => {
  const progress = kustomization(['Unknown', 'Progressing', 'Building manifests'], { lastAttemptedRevision: at(B) });
  expect(interpretKustomization(progress)).toMatchObject({
    applied: A,
    attempt: { commit: B, outcome: 'Syncing' },
    isWorking: true,
  });
  const checking = (message: string) => ({
    ...progress,
    status: {
      ...progress.status,
      conditions: [
        ...progress.status.conditions,
        { type: 'Healthy', status: 'Unknown', reason: 'Progressing', message },
      ],
    },
  });
  const own = interpretKustomization(checking(`Running health checks for revision ${at(B)} with a timeout of 30s`));
  expect(own).toMatchObject({ attempt: { commit: B, outcome: 'Applied' }, healthy: { reason: 'Progressing' } });
  // Left from an earlier attempt.
  const earlier = interpretKustomization(checking(`Running health checks for revision ${at(A)} with a timeout of 30s`));
  expect(earlier).toMatchObject({ attempt: { commit: B, outcome: 'Syncing' } });
});

test('while a failed object is tried again with another revision, the failure is that of the earlier one', () => {
  const history = (revision: string) => [
    { lastReconciledStatus: 'HealthCheckFailed', metadata: { revision: at(revision) } },
  ];
  const { status, ...rest } = kustomization(['False', 'HealthCheckFailed', 'upf is not ready'], {
    lastAttemptedRevision: at(B),
  });
  const conditions = [...status.conditions, { type: 'Reconciling', status: 'True', reason: 'ProgressingWithRetry' }];
  const retried = (revision: string) =>
    interpretKustomization({ ...rest, status: { ...status, conditions, history: history(revision) } });
  expect(retried(A)).toMatchObject({ attempt: { commit: B, outcome: 'Syncing' }, isWorking: true });
  expect(retried(B)).toMatchObject({ attempt: { commit: B, outcome: 'Applied' }, healthy: { status: 'False' } });
});

test('revisions in the history that were applied after the last success are reported, whatever is attempted now', () => {
  const entry = (revision: string, lastReconciledStatus: string) => ({
    lastReconciledStatus,
    metadata: { revision: at(revision) },
  });
  const history = [entry(B, 'HealthCheckFailed'), entry(A, 'HealthCheckFailed'), entry(A, 'ReconciliationSucceeded')];
  const since = (ready: 'True' | 'Unknown', entries: object[]) =>
    interpretKustomization(kustomization([ready, 'x'], { history: entries }))?.since;
  expect(since('Unknown', history)).toEqual([B]);
  // The success is no longer in the history.
  expect(since('Unknown', [entry(B, 'ReconciliationFailed')])).toEqual([B]);
  expect(since('Unknown', history.toReversed())).toBeUndefined();
  expect(since('True', history)).toBeUndefined();
});

test('a dependency that is not ready is no failure', () => {
  const value = kustomization(['False', 'DependencyNotReady', 'infra is not ready'], { lastAttemptedRevision: at(B) });
  expect(interpretKustomization(value)).toMatchObject({ attempt: { outcome: 'Syncing' }, isWorking: true });
});

test('a suspended object is blocked although it is ready', () => {
  const value = kustomization(['True', 'ReconciliationSucceeded'], {}, { suspend: true });
  const blocked = { status: 'Unknown', reason: 'Blocked' };
  expect(interpretKustomization(value)?.problem).toMatchObject({ synced: blocked, healthy: blocked });
});

test.each([
  ['the status', { observedGeneration: 1 }],
  ['no status', { observedGeneration: undefined }],
  ['the condition', { conditions: [{ type: 'Ready', status: 'True', observedGeneration: 1 }] }],
])('a report about an earlier spec is stale: %s', (_, status) => {
  const report = interpretKustomization(kustomization(['True', 'ReconciliationSucceeded'], status));
  expect(report?.problem?.synced).toMatchObject({ status: 'Unknown', reason: 'Stale' });
});

test('a stalled object failed', () => {
  const value = kustomization(['False', 'BuildFailed'], {
    conditions: [
      { type: 'Ready', status: 'False', reason: 'X' },
      { type: 'Stalled', status: 'True', message: 'invalid spec' },
    ],
  });
  expect(interpretKustomization(value)).toMatchObject({ attempt: { outcome: 'Failed', message: 'invalid spec' } });
});

test('the origin of an artifact of another kind than Git is its commit', () => {
  const value = kustomization(['True', 'ReconciliationSucceeded'], {
    lastAppliedRevision: 'latest@sha256:abc',
    lastAttemptedRevision: 'latest@sha256:abc',
    lastAppliedOriginRevision: at(B),
  });
  expect(interpretKustomization(value)).toMatchObject({ applied: B, attempt: { commit: B, outcome: 'Applied' } });
});

test.each([undefined, null, 7, 'x', [], {}, { metadata: {} }, { metadata: { name: 7 } }])(
  '%j is no report',
  (value) => {
    expect(interpretKustomization(value)).toBeUndefined();
  },
);

test('wrong types of single fields count as absent, and texts are printable, bounded and without passwords', () => {
  const value = kustomization(['False', 'BuildFailed', `\u001b[31m ${'x'.repeat(9999)}`], {
    lastAppliedRevision: { a: 1 },
    lastAttemptedRevision: at(B),
  });
  const report = interpretKustomization(value);
  expect(report?.applied).toBeUndefined();
  expect(report?.attempt?.message.length).toBeLessThanOrEqual(400);
  expect(report?.attempt?.message).not.toContain('\u001b');
  const secret = kustomization(['False', 'ArtifactFailed', 'GET https://ci:hunter2@git.example.com/x: 404']);
  expect(JSON.stringify(interpretKustomization(secret))).not.toContain('hunter2');
});
