import { expect, test } from 'vitest';
import { interpretApplication } from './interpret-application.ts';

const A = 'a'.repeat(40);
const B = 'b'.repeat(40);
const NOW = Date.parse('2030-01-01T01:00:00Z');
const minute = (number: number) => new Date(NOW - 3_600_000 + number * 60_000).toISOString();

function application(status: object = {}, spec: object = {}) {
  return {
    metadata: { name: 'web', namespace: 'argocd' },
    spec: { source: { repoURL: 'https://git.example.com/edge.git', path: 'clusters/edge/web' }, ...spec },
    status: {
      sync: { status: 'Synced', revision: A },
      health: { status: 'Healthy', lastTransitionTime: minute(10) },
      reconciledAt: minute(12),
      operationState: { phase: 'Succeeded', finishedAt: minute(11), syncResult: { revision: A }, message: 'synced' },
      history: [{ revision: A }],
      ...status,
    },
  };
}

const interpret = (value: unknown, healthSeenAt = NOW) => interpretApplication(value, { now: NOW, healthSeenAt });

test('a compared and synced revision is applied, and the health counts', () => {
  expect(interpret(application())).toMatchObject({
    object: 'Application argocd/web',
    path: 'clusters/edge/web',
    applied: A,
    attempt: { commit: A, outcome: 'Applied' },
    healthy: { status: 'True', reason: 'Healthy' },
    isWorking: false,
  });
});

test('a commit without a changed manifest is compared and not applied again: the cluster has its content', () => {
  expect(interpret(application({ sync: { status: 'Synced', revision: B } }))).toMatchObject({ applied: B });
});

test('health and comparison before the end of the last operation do not count; the same moment does', () => {
  const value = application({ reconciledAt: minute(10), sync: { status: 'Synced', revision: B } });
  const report = interpret(value);
  expect(report).toMatchObject({
    applied: A,
    attempt: { commit: A, outcome: 'Applied' },
    healthy: { status: 'Unknown', reason: 'Stale' },
    isWorking: true,
  });
  expect(interpret(application({ reconciledAt: minute(11) }))?.healthy.status).toBe('True');
  expect(interpret(application({ reconciledAt: undefined }))?.healthy.reason).toBe('Stale');
});

test('a running operation applies nothing yet', () => {
  const operationState = { phase: 'Running', syncResult: { revision: B }, message: 'waiting for healthy state of upf' };
  expect(interpret(application({ operationState }))).toMatchObject({
    applied: A,
    attempt: { commit: B, outcome: 'Syncing', message: 'waiting for healthy state of upf' },
    healthy: { status: 'Unknown', reason: 'Progressing' },
    isWorking: true,
  });
});

test.each(['Failed', 'Error'])('an operation with the phase %s is a failed attempt', (phase) => {
  const operationState = {
    phase,
    finishedAt: minute(11),
    syncResult: { revision: B },
    message: 'one or more objects failed',
  };
  const report = interpret(application({ operationState, sync: { status: 'OutOfSync', revision: B } }));
  expect(report).toMatchObject({
    applied: A,
    attempt: { commit: B, outcome: 'Failed', message: 'one or more objects failed' },
  });
});

test('a cluster that differs from the compared commit is out of sync, also after a successful operation', () => {
  expect(interpret(application({ sync: { status: 'OutOfSync', revision: A } }))).toMatchObject({
    attempt: { commit: A, outcome: 'OutOfSync' },
  });
});

test('an unknown comparison supports no statement, also with the name of a branch as revision', () => {
  for (const sync of [
    { status: 'Unknown', revision: 'main' },
    { status: 'Synced', revision: 'main' },
    undefined,
    'nonsense',
  ])
    expect(interpret(application({ sync }))?.problem?.synced).toMatchObject({
      status: 'Unknown',
      reason: 'NotReported',
    });
});

test('conditions of errors are failures, warnings are not', () => {
  const failed = interpret(application({ conditions: [{ type: 'ComparisonError', message: 'no such path' }] }));
  expect(failed?.problem).toMatchObject({
    synced: { status: 'False', reason: 'Failed', message: 'ComparisonError: no such path' },
    healthy: { status: 'False', reason: 'Degraded' },
  });
  const warned = interpret(application({ conditions: [{ type: 'OrphanedResourceWarning', message: 'x' }] }));
  expect(warned?.problem).toBeUndefined();
});

test('a SyncError concerns the commit of the failed operation, and makes the health False', () => {
  const operationState = { phase: 'Failed', finishedAt: minute(11), syncResult: { revision: B }, message: 'immutable' };
  const conditions = [{ type: 'SyncError', message: 'immutable' }];
  const report = interpret(application({ operationState, conditions, sync: { status: 'OutOfSync', revision: B } }));
  expect(report).toMatchObject({
    attempt: { commit: B, outcome: 'Failed' },
    healthy: { status: 'False', reason: 'Degraded' },
  });
  expect(report?.problem).toBeUndefined();
});

test.each([
  ['Progressing', 'Unknown', 'Progressing'],
  ['Suspended', 'Unknown', 'Progressing'],
  ['Degraded', 'False', 'Degraded'],
  ['Missing', 'False', 'Missing'],
  ['Unknown', 'Unknown', 'NotReported'],
  ['Nonsense', 'Unknown', 'NotReported'],
])('health %s is %s with reason %s', (status, expected, reason) => {
  expect(interpret(application({ health: { status } }))?.healthy).toMatchObject({ status: expected, reason });
});

test('the message names the objects that are not healthy, the failed ones first', () => {
  const resources = [
    { kind: 'Service', name: 'amf', health: { status: 'Progressing' } },
    { kind: 'Deployment', name: 'upf', health: { status: 'Degraded', message: '2/3 replicas are ready' } },
    { kind: 'ConfigMap', name: 'x' },
  ];
  const report = interpret(application({ health: { status: 'Degraded' }, resources }));
  expect(report?.healthy.message).toBe('Deployment upf: 2/3 replicas are ready; Service amf: Progressing');
});

test('a health counts after five seconds, also if the clock of the cluster is ahead or it has no time', () => {
  const health = (lastTransitionTime: string | undefined) =>
    application({ health: { status: 'Healthy', lastTransitionTime } });
  const before = (milliseconds: number) => new Date(NOW - milliseconds).toISOString();
  expect(interpret(health(before(4000)))).toMatchObject({
    healthy: { status: 'Unknown', reason: 'Progressing' },
    retryAfterMs: 1000,
  });
  expect(interpret(health(before(5000)))?.healthy.status).toBe('True');
  for (const time of [before(-3_600_000), undefined]) {
    expect(interpret(health(time), NOW - 4000)).toMatchObject({ healthy: { status: 'Unknown' }, retryAfterMs: 1000 });
    expect(interpret(health(time), NOW - 5000)?.healthy.status).toBe('True');
    // The clock of this machine went back.
    expect(interpret(health(time), NOW + 90_000)?.healthy.status).toBe('Unknown');
  }
});

test('of several sources the one of the target counts', () => {
  const value = application(
    { sync: { status: 'Synced', revisions: [A, B] } },
    {
      source: undefined,
      sources: [
        { repoURL: 'https://x/charts.git', path: 'c' },
        { repoURL: 'https://x/edge.git', path: '/edge/' },
      ],
    },
  );
  const options = { now: NOW, healthSeenAt: NOW };
  const isEdge = ({ repoURL }: { repoURL?: string | undefined }) => repoURL === 'https://x/edge.git';
  expect(interpretApplication(value, { ...options, isSource: isEdge })).toMatchObject({ applied: B, path: 'edge' });
  expect(interpretApplication(value, { ...options, isSource: () => false })?.problem).toBeDefined();
});

test.each([
  ['Kustomize', {}, 'Listed'],
  ['Directory', {}, 'None'],
  [undefined, {}, 'None'],
  ['Helm', { recurse: true }, 'None'],
  ['Directory', { recurse: true }, undefined],
  ['Directory', { recurse: true, exclude: '{net/*}' }, 'None'],
  ['Directory', { recurse: 'yes' }, 'None'],
])('of folders below its path, a source of type %s with %j deploys: %s', (sourceType, directory, expected) => {
  const source = { repoURL: 'https://git.example.com/edge.git', path: 'clusters/edge', directory };
  expect(interpret(application({ sourceType }, { source }))?.subfolders).toBe(expected);
  const multi = { source: undefined, sources: [{ path: 'x' }, source] };
  const value = application(
    { sourceTypes: ['Helm', sourceType], sync: { status: 'Synced', revisions: [A, B] } },
    multi,
  );
  const isSource = ({ path }: { path?: string | undefined }) => path === 'clusters/edge';
  if (sourceType !== undefined)
    expect(interpretApplication(value, { now: NOW, healthSeenAt: NOW, isSource })?.subfolders).toBe(expected);
});

test.each([undefined, null, 7, [], {}, { metadata: { name: {} } }])('%j is no report', (value) => {
  expect(interpret(value)).toBeUndefined();
});

test('a status of another form is no statement', () => {
  for (const status of [
    undefined,
    7,
    [],
    'x',
    { sync: [], health: 7, operationState: 'x', history: {}, resources: 'y' },
  ]) {
    const report = interpret({ ...application(), status });
    expect((report?.problem ?? report)?.healthy.status).toBe('Unknown');
    expect(report?.applied).toBeUndefined();
  }
});
