import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { DoraMetrics } from './dora-metrics.ts';

test('results count up by target, and a deleted target disappears', async () => {
  const registry = new Registry();
  const metrics = new DoraMetrics(registry);
  const [east, west] = ['east', 'west'].map((target) => ({ namespace: 'default', target }));
  const results = { deployments: 2, failures: ['Unhealthy'], leadTimesMs: [7_200_000], timesToRestoreMs: [90_000] };
  for (const labels of [east, west, east]) metrics.record(labels as never, results);
  metrics.record(west as never, undefined);
  const lines = (await registry.metrics())
    .split('\n')
    .filter((line) => /^sluice_dora_.*_(total|sum|count)\{/.test(line));
  expect(lines).toEqual([
    'sluice_dora_deployments_total{namespace="default",target="east"} 4',
    'sluice_dora_failed_changes_total{namespace="default",target="east",reason="Unhealthy"} 2',
    'sluice_dora_lead_time_seconds_sum{namespace="default",target="east"} 14400',
    'sluice_dora_lead_time_seconds_count{namespace="default",target="east"} 2',
    'sluice_dora_time_to_restore_seconds_sum{namespace="default",target="east"} 180',
    'sluice_dora_time_to_restore_seconds_count{namespace="default",target="east"} 2',
  ]);
});
