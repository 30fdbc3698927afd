import { expect, test } from 'vitest';
import type { DeliveryTarget } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import type { AnalysisRun } from '../../../src/resource/kinds/sluice/wave/analysis-run.ts';
import type { WavePlan } from '../../../src/resource/kinds/sluice/wave/wave-plan.ts';
import type { WaveTarget } from '../../../src/resource/kinds/sluice/wave/wave-target.ts';
import { skipFor } from '../../support/skip.ts';
import type { DeliveredPlace } from '../support/gitops/gitops-world.ts';
import { NEVER_READY } from '../support/gitops/play-nodes.ts';
import { Prometheus, prometheusMissing } from '../support/gitops/prometheus.ts';
import { deployment, type Scenario } from '../support/gitops/scenario.ts';
import { readTarget, type TriggerSetup } from '../support/gitops/triggers.ts';

const [CANARY, REST] = ['waved-canary', 'waved-rest'];
const PACKAGES = [CANARY, REST];
const PLANS = '/apis/sluice.dev/v1alpha1/namespaces/default/waveplans';
const TARGETS = '/apis/sluice.dev/v1alpha1/namespaces/default/wavetargets';
const RUNS = '/apis/sluice.dev/v1alpha1/namespaces/default/analysisruns';
const REVISIONS = '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions';

/** Plans whose targets an engine verifies, each at a place of its own. */
export function waveCase(of: () => Scenario, setup: () => TriggerSetup): void {
  test('waves follow the reports of the engine and an analysis; a Degraded one is rolled back', {
    ...skipFor(prometheusMissing()),
  }, async () => {
    const site = of();
    const { world } = site;
    await using prometheus = await Prometheus.start(PACKAGES.map((name) => `packages/${name}`));
    const places = new Map<string, DeliveredPlace>();
    for (const name of PACKAGES)
      places.set(name, await readTarget(site, setup(), { name, packages: [name], trigger: 'Annotation' }));
    const metric = { name: 'up', interval: '1s', count: 2, successCondition: 'result[0] == 1.0' };
    const provider = { prometheus: { address: prometheus.address, query: 'min(up{site=~"{{targets}}"})' } };
    await world.create('AnalysisTemplate', {
      metadata: { name: 'waved' },
      spec: { metrics: [{ ...metric, provider }] },
    });

    await propose('v1', deployment);
    await plan('waved-v1', {});
    await reached('waved-v1', 'Completed', async () => {
      // The second wave begins only when the engine has reported the first one as healthy, and the analysis was successful.
      const { waves = [] } = (await read('waved-v1')).status ?? {};
      if (waves[0]?.completedMs === undefined) expect(await lifecycle(REST, 'v1')).toBe('Proposed');
    });
    const { status } = await read('waved-v1');
    expect(status?.targets).toMatchObject({ total: 2, verified: 2, failed: 0 });
    expect(status?.log?.map(({ transition, wave }) => [transition, wave].filter(Boolean).join(' '))).toEqual([
      ...['Started', 'WaveStarted canary', 'WaveVerified canary', 'WaveAnalysed canary', 'WaveCompleted canary'],
      ...['WaveStarted rest', 'WaveVerified rest', 'WaveAnalysed rest', 'WaveCompleted rest', 'Completed'],
    ]);
    const [run, ...others] = await runs('waved-v1');
    expect(others).toEqual([]);
    expect(run?.spec.scope).toMatchObject({
      wave: 'canary',
      targets: { canary: [`packages/${CANARY}`], untouched: [`packages/${REST}`] },
    });
    expect(run?.status).toMatchObject({ phase: 'Successful', metricResults: [{ name: 'up', successful: 2 }] });
    for (const [name, place] of places) expect(await site.engine.report(place, name)).toMatchObject({ healthy: true });

    await propose('v2', (name) =>
      deployment(name, name === CANARY ? { [NEVER_READY]: 'true' } : {}, { progressDeadlineSeconds: 3 }),
    );
    await plan('waved-v2', { onFailure: 'Rollback', progressDeadline: '1h' });
    const isDegraded = async () => {
      const { deployment: report } = ((await world.targetObject(CANARY)).status ?? {}) as DeliveryTarget['status'] &
        object;
      const isCurrent = report?.commit === world.headOf(places.get(CANARY) as DeliveredPlace);
      return isCurrent && report?.synced.status === 'True' && report.healthy.reason === 'Degraded';
    };
    await site.eventually(isDegraded, () => `${site.engine.name} reports ${CANARY} as Degraded`);
    // What is Degraded may recover until the deadline.
    expect((await read('waved-v2')).status).toMatchObject({ phase: 'Running', targets: { failed: 0 } });
    await world.patch('WavePlan', 'waved-v2', { spec: { progressDeadline: '1s' } });
    await reached('waved-v2', 'RolledBack');
    const log = (await read('waved-v2')).status?.log ?? [];
    expect(log.find(({ transition }) => transition === 'RollbackStarted')?.message).toContain('1 targets have failed');
    expect(await failure('waved-v2')).toMatch(/^it was not verified within the deadline: .*Degraded/);
    expect(await lifecycle(CANARY, 'rollback-v2')).toBe('Published');
    expect(await lifecycle(REST, 'v2')).toBe('Proposed');
    await world.delivered(CANARY, [`${CANARY} v3`]);
    await site.synced(places.get(CANARY) as DeliveredPlace, CANARY);
  });

  async function propose(workspace: string, content: (name: string) => string): Promise<void> {
    const { author } = of().world;
    for (const name of PACKAGES) {
      const draft = await author.draft(name, workspace, { 'main.yaml': content(name) });
      await author.propose(draft);
      author.recordPublished(draft);
    }
  }

  async function plan(name: string, more: object): Promise<void> {
    const waves = [
      { name: 'canary', selector: { packages: [CANARY] }, analysis: [{ template: 'waved' }] },
      { name: 'rest', percent: 100 },
    ];
    await of().world.create('WavePlan', {
      metadata: { name },
      spec: { selector: { packages: PACKAGES }, waves, ...more },
    });
  }

  async function read(name: string): Promise<WavePlan> {
    return (await of().world.sluice.api.get(`${PLANS}/${name}`)).body as unknown as WavePlan;
  }

  /** Why the first target of the plan that has failed did. */
  async function failure(plan: string): Promise<string | undefined> {
    const { body } = await of().world.sluice.api.list(`${TARGETS}?fieldSelector=spec.plan%3D${plan}`);
    const logs = (body.items as unknown as readonly WaveTarget[]).flatMap(({ record }) => record?.log ?? []);
    return logs.find(({ transition }) => transition === 'Failed')?.message;
  }

  async function runs(plan: string): Promise<AnalysisRun[]> {
    const { body } = await of().world.sluice.api.list(RUNS);
    return (body.items as unknown as readonly AnalysisRun[]).filter(({ spec }) => spec.scope?.plan === plan);
  }

  async function lifecycle(path: string, workspace: string): Promise<unknown> {
    const { body } = await of().world.sluice.api.get(`${REVISIONS}/packages.${path}.${workspace}`);
    return (body.spec as { readonly lifecycle?: string } | undefined)?.lifecycle;
  }

  /** Waits for a phase of a plan, and checks each state on the way to it. */
  async function reached(
    name: string,
    phase: string,
    check: () => Promise<void> = async () => undefined,
  ): Promise<void> {
    let last: WavePlan['status'];
    await of().eventually(
      async () => {
        await check();
        last = (await read(name)).status;
        return last?.phase === phase;
      },
      () => `plan ${name} is ${phase}: ${JSON.stringify(last)}`,
    );
  }
}
