import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { skipFor } from '../../../test/support/skip.ts';
import { deploymentState } from './deployment-state.ts';
import type { EngineReport } from './engine-report.ts';
import { interpretApplication } from './interpret-application.ts';
import { interpretKustomization } from './interpret-kustomization.ts';

/** Objects of real engines, which the suites of the engines capture. */
const FOLDER = fileURLToPath(new URL('../../../test/cluster/gitops/captured/', import.meta.url));
const isMissing = !existsSync(FOLDER) && 'the objects of real engines are not captured';

const NOW = Date.parse('2030-01-01T00:00:00Z');

function captured(name: string): { status: Record<string, never> } {
  return JSON.parse(readFileSync(`${FOLDER}${name}.json`, 'utf8'));
}

/** The states of a package whose delivered content is that of the commit that the engine saw last. */
function statesOf(report: EngineReport | undefined, delivered: string): string[] {
  if (report === undefined) return [];
  const context = { treeAt: (commit: string) => commit, now: NOW };
  const { synced, healthy } = deploymentState({ folder: report.path, tree: delivered }, [report], context);
  return [`${synced.status} ${synced.reason}`, `${healthy.status} ${healthy.reason}`];
}

describe('objects of real engines', skipFor(isMissing), () => {
  test.each([
    ['good', 'attempted', ['True Synced', 'True Healthy']],
    ['progressing', 'attempted', ['True Synced', 'Unknown Progressing']],
    ['unhealthy', 'attempted', ['True Synced', 'False Degraded']],
    ['failed', 'attempted', ['False Failed', 'Unknown Stale']],
    ['suspended', 'attempted', ['Unknown Blocked', 'Unknown Blocked']],
    // The commit that Flux has not seen yet.
    ['stale', 'newer', ['False OutOfSync', 'Unknown Stale']],
    // A return to the content before, which Flux has not read yet: the cluster has that of the attempt.
    ['unhealthy', 'applied', ['False OutOfSync', 'Unknown Stale']],
    ['progressing', 'applied', ['False OutOfSync', 'Unknown Stale']],
    ['failed', 'applied', ['Unknown Stale', 'Unknown Stale']],
    ['good', 'applied', ['True Synced', 'True Healthy']],
  ])('Flux, %s, delivered: %s', (name, which, expected) => {
    const value = captured(`flux/${name}`);
    const { lastAttemptedRevision, lastAppliedRevision } = value.status;
    const commits = { attempted: lastAttemptedRevision, applied: lastAppliedRevision, newer: 'newer' };
    const delivered = String(commits[which as keyof typeof commits]).slice(-40);
    expect(statesOf(interpretKustomization(value), delivered)).toEqual(expected);
  });

  test.each([
    ['good', 'compared', ['True Synced', 'True Healthy']],
    ['progressing', 'compared', ['True Synced', 'Unknown Progressing']],
    ['degraded', 'compared', ['True Synced', 'False Degraded']],
    ['suspended', 'compared', ['True Synced', 'Unknown Progressing']],
    ['failed', 'compared', ['False Failed', 'False Degraded']],
    ['retrying', 'compared', ['Unknown Syncing', 'Unknown Stale']],
    ['out-of-sync', 'compared', ['False OutOfSync', 'Unknown Stale']],
    ['unreadable', 'compared', ['False Failed', 'False Degraded']],
    ['stale', 'newer', ['False OutOfSync', 'Unknown Stale']],
  ])('Argo CD, %s', (name, which, expected) => {
    const value = captured(`argocd/${name}`);
    const { revision } = value.status.sync as unknown as { revision: string };
    const report = interpretApplication(value, { now: NOW, healthSeenAt: NOW });
    expect(statesOf(report, which === 'newer' ? 'newer' : revision)).toEqual(expected);
  });
});
