import { expect, test } from 'vitest';
import type { PackageReport } from '../support/gitops/engine.ts';
import { deployment, type Scenario } from '../support/gitops/scenario.ts';

/** Milliseconds: the resolution of the figures. */
const POLL_MS = 20;

/** The way of one package from draft to healthy, with the seconds since the draft. */
export function timelineCase(of: () => Scenario): void {
  // Alone, since it measures.
  test('the timeline of a package from draft to Healthy', { concurrent: false }, async () => {
    const site = of();
    const { author } = site.world;
    const place = await site.target('timeline', ['before', 'timed']);
    // The place exists before, as in the life of a site.
    await site.publish(place, 'before', 'v1', { 'main.yaml': deployment('before') }, ['before v1']);
    await site.synced(place, 'before');
    const before = site.world.headOf(place);

    const start = Date.now();
    const steps = new Map<string, number>();
    const reach = (step: string) => steps.has(step) || steps.set(step, (Date.now() - start) / 1000);
    const name = await author.draft('timed', 'v1', { 'main.yaml': deployment('timed') });
    reach('draft created');
    await author.propose(name);
    reach('proposed');
    await author.approve(name);
    reach('published');
    await site.eventually(
      async () => site.world.headOf(place) !== before,
      () => 'the package is delivered',
      POLL_MS,
    );
    reach('delivered');
    const commit = site.world.headOf(place);
    const applied = site.eventually(
      async () => (await site.find('/apis/apps/v1/namespaces/default/deployments/timed')) !== undefined,
      () => 'the package is applied',
      POLL_MS,
    );
    const isApplied = applied.then(() => reach('applied to the cluster'));
    const isHealthy = (report: PackageReport) => {
      if (report.seen === commit) reach('commit seen by the engine');
      if (report.synced !== commit || !report.healthy) return false;
      reach('healthy');
      return true;
    };
    await site.reported(place, 'timed', 'healthy', isHealthy, POLL_MS);
    await isApplied;
    expect([...steps.keys()].toSorted()).toEqual([...STEPS].toSorted());
    const lines = STEPS.map((step) => `  ${(steps.get(step) ?? Number.NaN).toFixed(2).padStart(6)} s  ${step}`);
    console.log(`${site.engine.name}: package timed, commit ${commit.slice(0, 12)}\n${lines.join('\n')}`);
  });
}

const STEPS = [
  'draft created',
  'proposed',
  'published',
  'delivered',
  'commit seen by the engine',
  'applied to the cluster',
  'healthy',
] as const;
