import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { type CliFixture, cliFixture } from '../../src/cli/testing.ts';
import { RunningUp } from '../support/api/running-up.ts';
import { type GitServer, startGitServer } from '../support/git/git-server.ts';
import { OtlpCollector, type ReceivedSpan } from '../support/otlp-collector.ts';

const binary = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));
const PASSWORD = 's3cret-of-git';
const ALLOW = ['--allow-git-host', '127.0.0.1'];

let cli: CliFixture;
let git: GitServer;
beforeAll(async () => {
  cli = await cliFixture();
  cli.bare('apps.git');
  git = await startGitServer({ root: cli.folder });
});
afterAll(async () => {
  await git.close();
  await cli[Symbol.asyncDispose]();
});

async function startTraced(collector: OtlpCollector, data: string, environment: NodeJS.ProcessEnv = {}) {
  const up = await RunningUp.start(join(cli.folder, data), {
    words: ALLOW,
    environment: {
      ...{
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_SERVICE_NAME: 'sluice-test',
        OTEL_BSP_SCHEDULE_DELAY: '50',
      },
      ...environment,
    },
  });
  onTestFinished(() => up[Symbol.asyncDispose]());
  return up;
}

test('an approval is one trace, from the HTTP request through decision and transaction to the push', async () => {
  await using collector = await OtlpCollector.start();
  const up = await startTraced(collector, 'traced');
  const { api } = up;
  const config = '/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/repositories';
  const registered = await api.post(config, {
    ...{ apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'Repository', metadata: { name: 'apps' } },
    spec: { type: 'git', git: { repo: `${git.url}/apps.git`, branch: 'main' } },
  });
  expect(registered.status).toBe(201);
  await expect
    .poll(async () => (await api.get(`${config}/apps`)).text)
    .toMatch(/"type":"Ready","status":"True"|"status":"True".*"type":"Ready"/);
  const packages = '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions';
  const made = await api.post(packages, {
    ...{ apiVersion: 'porch.kpt.dev/v1alpha1', kind: 'PackageRevision', metadata: { namespace: 'default' } },
    spec: {
      ...{ repository: 'apps', packageName: 'web', workspaceName: 'v1', lifecycle: 'Draft' },
      tasks: [{ type: 'init', init: { description: 'web' } }],
    },
  });
  expect(made.status).toBe(201);
  const name = 'apps.web.v1';
  const step = async (path: string, lifecycle: string) => {
    const { body } = await api.get(`${packages}/${name}`);
    const sent = { ...body, spec: { ...(body.spec as object), lifecycle } };
    expect((await api.put(`${packages}/${name}${path}`, sent)).status).toBe(200);
  };
  await step('', 'Proposed');
  await step('/approval', 'Published');
  const secrets = '/api/v1/namespaces/default/secrets';
  await api.post(secrets, { metadata: { name: 'hidden-secret' }, stringData: { password: PASSWORD } });
  await api.get(`${secrets}/hidden-secret?pretty=hidden-query`);
  expect(await up.end()).toBe(0);

  expect(collector.problems).toEqual([]);
  expect(collector.resource).toMatchObject({ 'service.name': 'sluice-test' });
  const route = '/apis/porch.kpt.dev/v1alpha1/namespaces/{namespace}/packagerevisions';
  const [request, ...others] = collector.named(`PUT ${route}/{name}/approval`);
  expect(others).toEqual([]);
  const trace = collector.spans.filter(({ traceId }) => traceId === request?.traceId);
  const one = (wanted: string): ReceivedSpan => {
    const found = trace.filter((span) => span.name === wanted);
    expect([wanted, found.length]).toEqual([wanted, 1]);
    return found[0] as ReceivedSpan;
  };
  expect(request).toMatchObject({
    kind: 2,
    attributes: { 'http.response.status_code': 200, 'sluice.verb': 'update', 'sluice.subresource': 'approval' },
  });
  const update = one('package.update');
  expect(update).toMatchObject({
    parentSpanId: request?.spanId,
    attributes: {
      ...{ 'sluice.action': 'approve', 'sluice.package_revision': name, 'sluice.repository': 'default/apps' },
      'sluice.repository_id': expect.stringMatching(/^[0-9a-f-]{36}$/),
    },
  });
  expect(one('package.decide').parentSpanId).toBe(update.spanId);
  const transaction = one('package.transaction');
  expect(transaction).toMatchObject({ parentSpanId: update.spanId, attributes: { 'sluice.writes': 1 } });
  const push = one('git.push');
  expect(push).toMatchObject({
    ...{ kind: 3, parentSpanId: transaction.spanId },
    attributes: {
      'sluice.repository': 'default/apps',
      'sluice.repository_id': update.attributes['sluice.repository_id'],
    },
  });

  // Controllers have traces of their own.
  expect(collector.named('package.create')).toHaveLength(1);
  const [reconcile] = collector.named('reconcile repository');
  expect(reconcile?.parentSpanId).toBeUndefined();
  expect(reconcile?.attributes).toMatchObject({ 'sluice.controller': 'repository', 'sluice.key': 'default/apps' });
  const fetches = collector.named('git.fetch');
  expect(fetches.length).toBeGreaterThan(0);
  for (const secret of [PASSWORD, 'hidden', git.url, '127.0.0.1', 'admin'])
    expect(collector.text).not.toContain(secret);
});

test('a collector that does not respond does not keep the process', async () => {
  await using collector = await OtlpCollector.start();
  collector.status = 'none';
  const up = await startTraced(collector, 'hanging');
  await up.api.get('/api/v1/namespaces/default/configmaps');
  await expect.poll(() => collector.requests).toBeGreaterThan(0);
  await up.api.get('/api/v1/namespaces/default/configmaps');
  expect(await up.end()).toBe(0);
  expect(up.output.match(/cannot send spans/g)).toHaveLength(1);
});

const WATCH = `
  import { registerHooks } from 'node:module';
  const loaded = new Set();
  registerHooks({ load(url, context, next) {
    const [, name] = /node_modules\\/(@opentelemetry\\/[^/]+)/.exec(url) ?? [];
    if (name !== undefined) loaded.add(name);
    return next(url, context);
  } });
  process.on('exit', () => console.log('loaded ' + JSON.stringify([...loaded].sort())));
`;

test('without a collector, no module of the SDK is loaded', async () => {
  const loaded = async (environment: NodeJS.ProcessEnv) => {
    const words = ['up', '--data', join(cli.folder, 'off'), '--until-idle', '--listen', '127.0.0.1:0'];
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--import', `data:text/javascript,${encodeURIComponent(WATCH)}`, binary, ...words],
      { env: { ...process.env, ...environment } },
    );
    const [, names] = /^loaded (.*)$/m.exec(stdout) ?? [];
    return JSON.parse(names ?? '""') as string[];
  };
  // The client of Prometheus, which has /metrics, loads the interfaces.
  expect(await loaded({})).toEqual(['@opentelemetry/api']);
  await using collector = await OtlpCollector.start();
  expect(await loaded({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url })).toContain('@opentelemetry/sdk-trace');
});
