import { afterEach, beforeEach, expect, test } from 'vitest';
import { createWidget, openWatch, send, startTestServer, type TestServer, WIDGETS } from '../testing.ts';
import { Metrics } from './metrics.ts';

const QUEUE = {
  ...{ depth: 3, processing: 1, waiting: 0, failing: 2, adds: 7, retries: 2 },
  ...{ unfinishedMs: 1500, longestMs: 1000 },
};

let api: TestServer;
let metrics: Metrics;

beforeEach(async () => {
  metrics = new Metrics({
    load: () => api.server.load,
    queues: () => new Map([['approval', { ...QUEUE, maxConcurrentReconciles: 4 }]]),
    revisions: () => [{ repository: 'blueprints', lifecycle: 'Draft', count: 4 }],
    leadership: () => new Map([['sluice', true]]),
    quota: () => ({
      exceeded: 3,
      usage: () => [{ namespace: 'default', resource: 'objects', objects: 2, bytes: 512 }],
    }),
  });
  api = await startTestServer({
    paths: [metrics.paths],
    onRequest: (record) => metrics.requests.record(record),
  });
});
afterEach(() => api.stop());

/** The samples of one metric, without those of its histogram's buckets. */
async function samples(name: string): Promise<string[]> {
  const text = await (await api.fetch('/metrics')).text();
  return text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
}

test('requests count by verb, resource and code, and watches are no requests in flight', async () => {
  await createWidget(api, 'a');
  await api.fetch(`${WIDGETS}/a`);
  await api.fetch(`${WIDGETS}/b`);
  const watch = await openWatch(api);
  const widgets = 'group="test.sluice.dev",version="v1",resource="widgets"';
  expect(await samples('apiserver_request_total')).toEqual([
    `apiserver_request_total{verb="CREATE",${widgets},code="201"} 1`,
    `apiserver_request_total{verb="GET",${widgets},code="200"} 1`,
    `apiserver_request_total{verb="GET",${widgets},code="404"} 1`,
    `apiserver_request_total{verb="WATCH",${widgets},code="200"} 1`,
  ]);
  expect(await samples('apiserver_longrunning_requests')).toEqual(['apiserver_longrunning_requests{verb="WATCH"} 1']);
  expect(await samples('apiserver_request_duration_seconds_count')).not.toContainEqual(
    expect.stringContaining('WATCH'),
  );
  await watch.close();
});

test('words of strangers are no labels', async () => {
  for (let index = 0; index < 20; index += 1) {
    await send(api, 'POST', `/apis/g${index}.example/v${index}/things${index}`, {});
    await api.fetch(`/path/${index}`);
    await fetch(`${api.listener.url}/apis/h${index}.example/v1/others`);
  }
  expect(await samples('apiserver_request_total')).toEqual([
    'apiserver_request_total{verb="OTHER",group="",version="",resource="",code="404"} 20',
    'apiserver_request_total{verb="GET",group="",version="",resource="",code="404"} 20',
    'apiserver_request_total{verb="GET",group="",version="",resource="",code="401"} 20',
  ]);
});

test('controllers and packages have the names that dashboards know', async () => {
  const reconcile = { controller: 'approval', key: 'default/a', milliseconds: 20 };
  metrics.controllers.record({ ...reconcile, outcome: 'success' });
  metrics.controllers.record({ ...reconcile, outcome: 'error' });
  metrics.packages.transition('approve', 'refused');
  metrics.packages.gitOperation('push', 0.2);
  metrics.packages.merged('proposal', 'out_of_band');
  metrics.packages.merged('user', 'published');
  metrics.packages.gateWaited(30);
  metrics.client.requested({ code: '200', method: 'GET', host: 'kube:6443' });
  metrics.client.requested({ code: '<error>', method: 'GET', host: 'kube:6443' });
  metrics.webhooks.began('/admission/validate');
  metrics.webhooks.began('/admission/validate');
  metrics.webhooks.ended('/admission/validate', 200, 0.01);
  const expected = [
    'controller_runtime_reconcile_total{controller="approval",result="success"} 1',
    'controller_runtime_reconcile_errors_total{controller="approval"} 1',
    'controller_runtime_reconcile_time_seconds_count{controller="approval"} 2',
    'workqueue_depth{name="approval",controller="approval"} 3',
    'workqueue_adds_total{name="approval",controller="approval"} 7',
    'workqueue_retries_total{name="approval",controller="approval"} 2',
    'workqueue_work_duration_seconds_count{name="approval",controller="approval"} 2',
    'workqueue_unfinished_work_seconds{name="approval",controller="approval"} 1.5',
    'workqueue_longest_running_processor_seconds{name="approval",controller="approval"} 1',
    'controller_runtime_active_workers{controller="approval"} 1',
    'controller_runtime_max_concurrent_reconciles{controller="approval"} 4',
    'rest_client_requests_total{code="200",method="GET",host="kube:6443"} 1',
    'rest_client_requests_total{code="<error>",method="GET",host="kube:6443"} 1',
    'leader_election_master_status{name="sluice"} 1',
    'controller_runtime_webhook_requests_in_flight{webhook="/admission/validate"} 1',
    'controller_runtime_webhook_requests_total{webhook="/admission/validate",code="200"} 1',
    'controller_runtime_webhook_latency_seconds_count{webhook="/admission/validate"} 1',
    'sluice_package_revisions{repository="blueprints",lifecycle="Draft"} 4',
    'sluice_transitions_total{action="approve",result="refused"} 1',
    'sluice_git_operation_seconds_count{operation="push"} 1',
    'sluice_gate_waiting_seconds_sum 30',
    'sluice_host_merges_total{origin="proposal",result="out_of_band"} 1',
    'sluice_host_merges_total{origin="user",result="published"} 1',
    'leader_election_master_status{name="sluice"} 1',
  ];
  // Collected twice, since counters of queues are read each time.
  for (let round = 0; round < 2; round += 1)
    for (const line of expected) expect(await samples(line.split(/[{ ]/)[0] ?? '')).toContain(line);
});

test('what namespaces hold, and what waits', async () => {
  expect(await samples('sluice_namespace_objects')).toEqual([
    'sluice_namespace_objects{namespace="default",resource="objects"} 2',
  ]);
  expect(await samples('sluice_namespace_bytes')).toEqual([
    'sluice_namespace_bytes{namespace="default",resource="objects"} 512',
  ]);
  expect(await samples('sluice_quota_exceeded_total')).toEqual(['sluice_quota_exceeded_total 3']);
  expect(await samples('apiserver_current_inqueue_requests')).toContain(
    'apiserver_current_inqueue_requests{request_kind="mutating"} 0',
  );
  expect(await samples('sluice_request_body_bytes')).toEqual(['sluice_request_body_bytes 0']);
});

test('items that fail are counted while they wait for the next attempt', async () => {
  expect(await samples('sluice_controller_failing_items')).toEqual([
    'sluice_controller_failing_items{controller="approval"} 2',
  ]);
});
