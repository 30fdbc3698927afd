import { expect, test } from 'vitest';
import { capture } from '../support/gitops/capture.ts';
import { NEVER_READY } from '../support/gitops/play-nodes.ts';
import { deployment, type Scenario } from '../support/gitops/scenario.ts';

const automated = { prune: true, selfHeal: true, allowEmpty: true };

/** What Argo CD reports of a package in each state; the objects are captured for the tests of read-back. */
export function argoCdStates(of: () => Scenario): void {
  test('the states of a package in the status of its Application', async () => {
    const site = of();
    const place = await site.target('states', ['stately']);
    const publish = (revision: number, main: string, other: string | null = null) =>
      site.publish(place, 'stately', `v${revision}`, { 'main.yaml': main, 'other.yaml': other }, [
        `stately v${revision}`,
      ]);

    await publish(1, deployment('stately'));
    const good = await site.synced(place, 'stately');
    expect(statusOf(good.object)).toMatchObject({ sync: { status: 'Synced' }, health: { status: 'Healthy' } });
    capture('argocd/good', good.object);

    await publish(2, deployment('stately', { [NEVER_READY]: 'true' }, { progressDeadlineSeconds: 3 }));
    const stale = await site.engine.report(place, 'stately');
    expect(stale.seen).toBe(good.seen);
    expect(stale.synced).not.toBe(site.world.headOf(place));
    capture('argocd/stale', stale.object);

    const healthIs = (status: string) => (report: { readonly object: unknown; readonly synced: string | undefined }) =>
      report.synced === site.world.headOf(place) && statusOf(report.object).health?.status === status;
    const progressing = await site.reported(place, 'stately', 'is Progressing', healthIs('Progressing'));
    capture('argocd/progressing', progressing.object);
    const degraded = await site.reported(place, 'stately', 'is Degraded', healthIs('Degraded'));
    capture('argocd/degraded', degraded.object);

    const invalid = (name: string) => deployment(name, {}, { selector: { matchLabels: { app: 'another' } } });
    await publish(3, invalid('stately'));
    const refused = await site.refused(place, 'stately', /ComparisonError/);
    // The comparison on the server finds the mistake, so no sync begins, and the last operation is that of the previous commit.
    expect(statusOf(refused.object)).toMatchObject({ operationState: { phase: 'Succeeded' } });
    capture('argocd/comparison-error', refused.object);

    await publish(4, deployment('stately'), invalid('new'));
    const retrying = await site.refused(place, 'stately', /Retrying attempt/);
    // A failure that is tried again is an operation that runs.
    expect(statusOf(retrying.object)).toMatchObject({ operationState: { phase: 'Running' } });
    capture('argocd/retrying', retrying.object);

    await publish(5, deployment('stately', {}, { paused: true }));
    const paused = await site.reported(place, 'stately', 'is Suspended', healthIs('Suspended'));
    capture('argocd/suspended', paused.object);

    // Without automation, what is delivered waits for a user.
    await site.engine.follow(place, { spec: { syncPolicy: {} } });
    await publish(6, deployment('stately', { release: '6' }));
    const seen = site.world.headOf(place);
    const manual = await site.reported(place, 'stately', 'is seen', (report) => report.seen === seen);
    expect(statusOf(manual.object)).toMatchObject({ sync: { status: 'OutOfSync' } });
    capture('argocd/out-of-sync', manual.object);

    await site.engine.follow(place, { spec: { syncPolicy: { automated, retry: { limit: 0 } } } });
    await publish(7, deployment('stately'), invalid('new'));
    const failed = await site.refused(place, 'stately', /^Failed/);
    capture('argocd/failed', failed.object);

    await site.engine.follow(place);
    await publish(8, deployment('stately'));
    await site.synced(place, 'stately');
  });

  test('an Application of a branch that does not exist', async () => {
    const site = of();
    const place = await site.target('unreadable', ['unread']);
    await site.publish(place, 'unread', 'v1', { 'main.yaml': deployment('unread') }, ['unread v1']);
    await site.synced(place, 'unread');
    const source = { repoURL: place.url, targetRevision: 'no-such-branch', path: '{{ .path.path }}' };
    await site.engine.follow(place, { spec: { source } });
    const unreadable = await site.refused(place, 'unread', /ComparisonError/);
    capture('argocd/unreadable', unreadable.object);
  });
}

interface ApplicationStatus {
  readonly health?: { readonly status: string };
}

function statusOf(object: unknown): ApplicationStatus {
  return (object as { readonly status?: ApplicationStatus } | undefined)?.status ?? {};
}
