import { expect, test } from 'vitest';
import { repositoryKind } from '../../src/resource/kinds/repository.ts';
import { type RepositoryReport, statusAfter } from './repository-status.ts';

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
    trustProblems: [],
    statementProblems: [],
  },
};

test('when a webhook spoke is written once a minute, looked at or not', () => {
  const repository = repositoryKind.complete({ metadata: { name: 'apps' }, spec: { git: { repo: '/srv/apps.git' } } });
  const spoken = (webhookAt: number) => ({ ...REPORT, facts: { ...REPORT.facts, webhookAt } }) as RepositoryReport;
  const first = statusAfter(repository, spoken(1000), 1000);
  const told = { ...repository, ...(first === undefined ? {} : { status: first }) };
  expect(statusAfter(told, spoken(60_999), 60_999)).toBeUndefined();
  expect(statusAfter(told, spoken(61_000), 61_000)?.lastWebhookTime).toBe('1970-01-01T00:01:01Z');
  expect(statusAfter(told, spoken(0), 0)).toBeDefined();
});
