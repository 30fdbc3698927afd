import { expect, test } from 'vitest';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { type RepositoryReport, repositoryStatusAfter } from './repository-status.ts';

const REPORT: RepositoryReport = {
  reason: 'Ready',
  message: '',
  facts: {
    packageCount: 1,
    gitCommitHash: undefined,
    syncedAt: 0,
    nextSyncAt: 300_000,
    ranOnceAt: undefined,
    webhookAt: 1000,
    remoteNote: undefined,
    refusedPushes: [],
    trustProblems: [],
    statementProblems: [],
  },
};

test('the time of the last webhook is written every five minutes', () => {
  const repository = repositoryKind.complete({ metadata: { name: 'apps' }, spec: { git: { repo: '/srv/apps.git' } } });
  const reportWithWebhook = (webhookAt: number) =>
    ({ ...REPORT, facts: { ...REPORT.facts, webhookAt } }) as RepositoryReport;
  const first = repositoryStatusAfter(repository, reportWithWebhook(1000), 1000);
  const known = { ...repository, ...(first === undefined ? {} : { status: first }) };
  expect(repositoryStatusAfter(known, reportWithWebhook(300_999), 300_999)).toBeUndefined();
  expect(repositoryStatusAfter(known, reportWithWebhook(301_000), 301_000)?.lastWebhookTime).toBe(
    '1970-01-01T00:05:01Z',
  );
  expect(repositoryStatusAfter(known, reportWithWebhook(0), 0)).toBeDefined();
});

test('refusals by the Git host are shown until a push is accepted', () => {
  const repository = repositoryKind.complete({ metadata: { name: 'apps' }, spec: { git: { repo: '/srv/apps.git' } } });
  const report = (names: readonly string[]): RepositoryReport => ({
    ...REPORT,
    facts: {
      ...(REPORT.facts as NonNullable<RepositoryReport['facts']>),
      refusedPushes: names.map((revision) => ({ revision, message: 'protected branch hook declined' })),
    },
  });
  const after = (object: typeof repository, names: readonly string[]) => ({
    ...object,
    status: repositoryStatusAfter(object, report(names), 1000) ?? object.status,
  });
  const pushes = ({ status }: typeof repository) => findCondition(status?.conditions, 'sluice.dev/PushesAccepted');
  const fine = after(repository, []) as typeof repository;
  expect(pushes(fine)).toBeUndefined();
  const refused = after(fine, ['apps.a.v1', 'apps.b.v1', 'apps.c.v1', 'apps.d.v1']) as typeof repository;
  expect(pushes(refused)).toMatchObject({ status: 'False', reason: 'PushRefused' });
  expect(pushes(refused)?.message).toMatch(/^apps\.a\.v1: protected branch hook declined; .*; and 1 more revisions$/);
  expect(pushes(after(refused, []) as typeof repository)).toMatchObject({ status: 'True', reason: 'Accepted' });
});

test('the state of policies is shown as long as the Repository names some, and kept while they cannot be read', () => {
  const annotations = { 'sluice.dev/policies': 'policies' };
  const spec = { git: { repo: '/srv/apps.git' } };
  const repository = repositoryKind.complete({ metadata: { name: 'apps', annotations }, spec });
  const invalid = { status: 'False', reason: 'Invalid', message: 'policies/a.yaml:1:1: kind: Required value' } as const;
  const unread = { status: 'Unknown', reason: 'NotRead', message: 'the repository has not been read yet' } as const;
  const after = (object: typeof repository, policies: RepositoryReport['policies']) => {
    const status = repositoryStatusAfter(object, { ...REPORT, policies }, 1000) ?? object.status;
    return { ...object, status } as typeof repository;
  };
  const shown = ({ status }: typeof repository) => findCondition(status?.conditions, 'sluice.dev/PoliciesValid');
  expect(shown(after(repository, unread))).toMatchObject(unread);
  const known = after(repository, invalid);
  expect(shown(known)).toMatchObject(invalid);
  expect(shown(after(known, unread))).toMatchObject(invalid);
  expect(shown(after(known, undefined))).toMatchObject(invalid);
  expect(shown(after({ ...known, metadata: { ...known.metadata, annotations: {} } }, undefined))).toBeUndefined();
});
