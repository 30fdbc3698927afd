import { expect, test } from 'vitest';
import { capture } from '../support/gitops/capture.ts';
import { NEVER_READY } from '../support/gitops/play-nodes.ts';
import { deployment, type Scenario } from '../support/gitops/scenario.ts';

const KUSTOMIZATION = '/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations/states';
const SOURCE = '/apis/source.toolkit.fluxcd.io/v1/namespaces/flux-system/gitrepositories/states';

/** What Flux reports of a package in each state; the objects are captured for the tests of read-back. */
export function fluxStates(of: () => Scenario): void {
  test('the states of a package in the status of its Kustomization', async () => {
    const site = of();
    const place = await site.target('states', ['stately'], { follow: { spec: { timeout: '4s' } } });
    const publish = (revision: number, content: string) =>
      site.publish(place, 'stately', `v${revision}`, { 'main.yaml': content }, [`stately v${revision}`]);
    const ready = (object: unknown) =>
      ((object as { status: { conditions: readonly { type: string }[] } }).status.conditions ?? []).find(
        ({ type }) => type === 'Ready',
      );

    await publish(1, deployment('stately'));
    const good = await site.synced(place, 'stately');
    expect(ready(good.object)).toMatchObject({ status: 'True', reason: 'ReconciliationSucceeded' });
    capture('flux/good', good.object);
    capture('flux/good-source', await site.find(SOURCE));

    await publish(2, deployment('stately', { [NEVER_READY]: 'true' }));
    const stale = await site.engine.report(place, 'stately');
    expect(stale).toMatchObject({ healthy: true, synced: good.synced });
    expect(stale.synced).not.toBe(site.world.headOf(place));
    capture('flux/stale', stale.object);

    const isProgressing = ({ object }: { readonly object: unknown }) =>
      /Running health checks/.test(JSON.stringify(object));
    const progressing = await site.reported(place, 'stately', 'progresses', isProgressing);
    expect(ready(progressing.object)).toMatchObject({ status: 'Unknown', reason: 'Progressing' });
    capture('flux/progressing', progressing.object);

    const unhealthy = await site.refused(place, 'stately', /^HealthCheckFailed/);
    capture('flux/unhealthy', unhealthy.object);

    await publish(3, deployment('stately', {}, { selector: { matchLabels: { app: 'another' } } }));
    const failed = await site.refused(place, 'stately', /dry-run failed.*Invalid/s);
    expect(ready(failed.object)).toMatchObject({ status: 'False', reason: 'ReconciliationFailed' });
    capture('flux/failed', failed.object);

    const suspend = (value: boolean) => site.world.cluster.patch(KUSTOMIZATION, { spec: { suspend: value } });
    await publish(4, deployment('stately'));
    const recovered = await site.synced(place, 'stately');
    await suspend(true);
    await publish(5, deployment('stately', { release: '5' }));
    const seen = site.world.headOf(place);
    const suspended = await site.reported(place, 'stately', 'is seen', (report) => report.seen === seen);
    // Flux says nothing in the status: a suspended Kustomization is Ready on the old revision.
    expect(ready(suspended.object)).toMatchObject({ status: 'True', reason: 'ReconciliationSucceeded' });
    expect(suspended.synced).toBe(recovered.synced);
    capture('flux/suspended', suspended.object);
    capture('flux/suspended-source', await site.find(SOURCE));
    await suspend(false);
    await site.synced(place, 'stately');
  });
}
