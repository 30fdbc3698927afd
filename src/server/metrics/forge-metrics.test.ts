import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { ForgeMetrics } from './forge-metrics.ts';

test('requests count by host, credentials and account; gauges show what is left now; the number of accounts is bounded', async () => {
  const registry = new Registry();
  const metrics = new ForgeMetrics(registry);
  const labels = { host: 'api.github.com', name: 'Secret default/github', account: 'app 1 acme' };
  let pausedMs = 0;
  const usage = () => ({
    resources: [
      { resource: 'core' as const, rate: { remaining: 4000, limit: 5000, resetAt: undefined }, pausedMs },
      { resource: 'graphql' as const, rate: { remaining: 7, limit: undefined, resetAt: undefined }, pausedMs: 0 },
    ],
    content: { minute: 3, hour: 40 },
  });
  metrics.requested({ ...labels, outcome: 'answered', usage });
  metrics.requested({ ...labels, outcome: 'not_modified', usage });
  metrics.requested({ ...labels, outcome: 'not_modified', usage });
  pausedMs = 1500;
  const lines = async () => (await registry.metrics()).split('\n').filter((line) => line.startsWith('sluice_forge'));
  const of = 'host="api.github.com",credentials="Secret default/github",account="app 1 acme"';
  expect(await lines()).toEqual([
    `sluice_forge_requests_total{${of},outcome="answered"} 1`,
    `sluice_forge_requests_total{${of},outcome="not_modified"} 2`,
    `sluice_forge_rate_remaining{${of},resource="core"} 4000`,
    `sluice_forge_rate_remaining{${of},resource="graphql"} 7`,
    `sluice_forge_rate_limit{${of},resource="core"} 5000`,
    `sluice_forge_content_requests{${of},window="minute"} 3`,
    `sluice_forge_content_requests{${of},window="hour"} 40`,
    `sluice_forge_paused_seconds{${of},resource="core"} 1.5`,
    `sluice_forge_paused_seconds{${of},resource="graphql"} 0`,
  ]);
  const idle = () => ({ resources: [], content: { minute: 0, hour: 0 } });
  for (let at = 0; at < 150; at += 1)
    metrics.requested({ ...labels, account: `app 1 owner-${at}`, outcome: 'limited', usage: idle });
  const after = await lines();
  expect(after.filter((line) => line.startsWith('sluice_forge_requests_total'))).toHaveLength(100);
  expect(after.some((line) => line.includes('acme'))).toBe(false);
});
