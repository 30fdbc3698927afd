import { expect, test } from 'vitest';
import { OtlpCollector, type ReceivedSpan } from '../../../test/support/otlp-collector.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { currentTrace, inTrace, traced } from '../../foundation/tracing/traced.ts';
import { startTestServer, WIDGETS } from '../../server/testing.ts';
import type { LogEntry } from '../service/log/log-entry.ts';
import { withTracing } from './with-tracing.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';
const SAMPLED = `00-${TRACE}-${SPAN}-01`;

/** Runs work with tracing, and returns the spans and the log. */
async function spansOf(work: () => Promise<unknown>, environment: NodeJS.ProcessEnv = {}) {
  await using collector = await OtlpCollector.start();
  const log: LogEntry[] = [];
  await withTracing({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...environment }, (entry) => log.push(entry), work);
  expect(collector.problems).toEqual([]);
  return { spans: collector.spans, text: collector.text, resource: collector.resource, log };
}

/** The spans of requests to a server with widgets. */
async function requestSpans(
  requests: readonly (readonly [path: string, traceparent?: string | undefined, user?: string])[],
  environment: NodeJS.ProcessEnv = {},
) {
  const server = await startTestServer();
  try {
    return await spansOf(async () => {
      for (const [path, traceparent, user = 'admin'] of requests)
        await server.fetch(path, traceparent === undefined ? {} : { headers: { traceparent } }, user);
    }, environment);
  } finally {
    await server.stop();
  }
}

test('spans follow asynchronous calls, and errors end them without their messages', async () => {
  const { spans, text, resource } = await spansOf(async () => {
    await traced('outer', { 'sluice.repository': 'default/apps' }, async () => {
      await traced('inner', { number: 3 }, async (span) => span.set({ 'is.added': true }));
      await traced('refused', {}, async () => Promise.reject(new SluiceError('Refused', 'hidden'))).catch(() => 0);
      await traced('failed', {}, async () => Promise.reject(new TypeError('hidden'))).catch(() => 0);
    });
  });
  const [inner, refused, failed, outer] = spans as [ReceivedSpan, ReceivedSpan, ReceivedSpan, ReceivedSpan];
  expect(outer).toMatchObject({ name: 'outer', attributes: { 'sluice.repository': 'default/apps' } });
  expect(outer.parentSpanId).toBeUndefined();
  for (const span of [inner, refused, failed])
    expect(span).toMatchObject({ traceId: outer.traceId, parentSpanId: outer.spanId });
  // The repository is on each span below, for searches.
  expect(inner.attributes).toEqual({ 'sluice.repository': 'default/apps', number: 3, 'is.added': true });
  // A refusal is an outcome; only a failure of the server is an error.
  expect(refused).toMatchObject({ attributes: { 'error.type': 'Refused' }, status: { code: 0 } });
  expect(failed).toMatchObject({ attributes: { 'error.type': 'TypeError' }, status: { code: 2 } });
  expect(text).not.toContain('hidden');
  expect(resource).toMatchObject({ 'service.name': 'sluice', 'service.version': expect.any(String) });
});

test('work for several requests is a child of the first and linked with the others, and leads no later work into their traces', async () => {
  const { spans } = await spansOf(async () => {
    const waiting: ReturnType<typeof currentTrace>[] = [];
    const shared = Promise.withResolvers<void>();
    const request = (name: string) =>
      traced(name, {}, async () => {
        waiting.push(currentTrace());
        await shared.promise;
      });
    const requests = [request('a'), request('b')];
    await traced('batch', {}, async () => undefined, { origins: waiting });
    await inTrace(waiting[1], () => traced('plan', {}, async () => undefined));
    await traced('c', {}, () => inTrace(undefined, () => traced('loop', {}, async () => undefined)));
    shared.resolve();
    await Promise.all(requests);
  });
  const named = (name: string) => spans.find((span) => span.name === name) as ReceivedSpan;
  expect(named('batch')).toMatchObject({ traceId: named('a').traceId, parentSpanId: named('a').spanId });
  expect(named('batch').links).toMatchObject([{ spanId: named('b').spanId }]);
  expect(named('b').links).toMatchObject([{ spanId: named('batch').spanId }]);
  expect(named('plan').parentSpanId).toBe(named('b').spanId);
  expect(named('loop').parentSpanId).toBeUndefined();
  expect(named('loop').traceId).not.toBe(named('c').traceId);
});

test('a request is a span with its route, and without names and queries', async () => {
  const { spans, text } = await requestSpans([
    [`${WIDGETS}?labelSelector=hidden%3Dtrue`],
    [`${WIDGETS}/hidden`],
    ['/apis/hidden.example/v1/hiddens'],
    [WIDGETS, undefined, 'hidden-user'],
    ['/hidden'],
  ]);
  const route = '/apis/test.sluice.dev/v1/namespaces/{namespace}/widgets';
  expect(spans.map(({ name, kind, attributes }) => [name, kind, attributes['http.response.status_code']])).toEqual([
    [`GET ${route}`, 2, 200],
    [`GET ${route}/{name}`, 2, 404],
    ['GET', 2, 404],
    // Refused before the resource is searched, so that a refusal reveals nothing.
    ['GET', 2, 403],
    ['GET', 2, 404],
  ]);
  expect(spans[0]?.attributes).toEqual({
    'http.request.method': 'GET',
    'http.response.status_code': 200,
    'http.route': route,
    'sluice.api_group': 'test.sluice.dev',
    'sluice.request_id': expect.stringMatching(/^[0-9a-f-]{36}$/),
    'sluice.resource': 'widgets',
    'sluice.verb': 'list',
  });
  expect(text).not.toContain('hidden');
});

test('a request without a valid sender is no span', async () => {
  const server = await startTestServer();
  const { spans } = await spansOf(async () => {
    expect((await fetch(`${server.listener.url}${WIDGETS}`, { headers: { traceparent: SAMPLED } })).status).toBe(401);
  });
  await server.stop();
  expect(spans).toEqual([]);
});

const allowed = {
  authorizer: { authorize: async () => ({ allowed: true, reason: '' }) },
};

test('only a trusted caller continues its trace; the trace of another one is linked', async () => {
  const server = await startTestServer(allowed);
  const { spans } = await spansOf(async () => {
    for (const user of ['admin', 'anna']) await server.fetch(WIDGETS, { headers: { traceparent: SAMPLED } }, user);
  });
  await server.stop();
  const [trusted, other] = spans as [ReceivedSpan, ReceivedSpan];
  expect(trusted).toMatchObject({ traceId: TRACE, parentSpanId: SPAN, links: [] });
  expect(other.parentSpanId).toBeUndefined();
  expect(other.traceId).not.toBe(TRACE);
  expect(other.links).toMatchObject([{ traceId: TRACE, spanId: SPAN }]);
});

test('a caller that is not trusted does not make the server record, nor not record', async () => {
  const server = await startTestServer(allowed);
  const send = async (flags: string, user: string) =>
    void (await server.fetch(WIDGETS, { headers: { traceparent: `00-${TRACE}-${SPAN}-${flags}` } }, user));
  const none = { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' };
  const off = await spansOf(async () => {
    for (const flags of ['01', '03', 'ff']) await send(flags, 'anna');
  }, none);
  expect(off.spans).toEqual([]);
  expect((await spansOf(() => send('01', 'admin'), none)).spans).toHaveLength(1);
  // A sampler that is not based on parents is not influenced by trusted callers either.
  expect((await spansOf(() => send('01', 'admin'), { ...none, OTEL_TRACES_SAMPLER: 'traceidratio' })).spans).toEqual(
    [],
  );
  expect((await spansOf(() => send('00', 'anna'))).spans).toHaveLength(1);
  expect((await spansOf(() => send('00', 'admin'))).spans).toEqual([]);
  await server.stop();
});

test('an invalid traceparent is ignored', async () => {
  const invalid = [
    '',
    'x',
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `ff-${TRACE}-${SPAN}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01-more`,
    `00-${TRACE}-${SPAN}`,
    `${SAMPLED}, ${SAMPLED}`,
    `00-${TRACE}-${SPAN}-01 `.repeat(100),
    '-'.repeat(8000),
    '00-\u00e9',
  ];
  const { spans } = await requestSpans(invalid.map((traceparent) => [WIDGETS, traceparent]));
  expect(spans).toHaveLength(invalid.length);
  for (const span of spans) {
    expect(span.links).toEqual([]);
    expect(span.parentSpanId).toBeUndefined();
    expect(span.traceId).not.toBe(TRACE);
  }
});

test('failures of a collector are logged once until it accepts spans again', async () => {
  await using collector = await OtlpCollector.start();
  const log: string[] = [];
  const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/`, OTEL_BSP_SCHEDULE_DELAY: '1' };
  await withTracing(
    environment,
    ({ message }) => log.push(message),
    async () => {
      for (const status of [400, 400, 200, 400] as const) {
        collector.status = status;
        const before = collector.requests;
        await traced('step', {}, async () => undefined);
        await expect.poll(() => collector.requests).toBe(before + 1);
      }
    },
  );
  const message = `cannot send spans to ${collector.url}/v1/traces: Bad Request; spans are lost until it accepts them`;
  expect(log).toEqual([message, message]);
});

test('a collector that does not respond delays neither work nor the end of its connections', async () => {
  await using collector = await OtlpCollector.start();
  collector.status = 'none';
  const environment = {
    ...{ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_EXPORTER_OTLP_TIMEOUT: '20', OTEL_BSP_SCHEDULE_DELAY: '1' },
    ...{ OTEL_BSP_MAX_QUEUE_SIZE: '10', OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '5' },
  };
  const log: string[] = [];
  await withTracing(
    environment,
    ({ message }) => log.push(message),
    async () => {
      await traced('step', {}, async () => undefined);
      await expect.poll(() => collector.requests).toBeGreaterThan(0);
      for (let step = 0; step < 1000; step += 1) await traced('step', {}, async () => undefined);
    },
  );
  await expect.poll(() => collector.connections).toBe(0);
  expect(log.filter((message) => message.startsWith('cannot send spans'))).toHaveLength(1);
  expect(log.length).toBeLessThanOrEqual(3);
});

test('mistakes in the settings are logged, and the work runs without tracing', async () => {
  const settings = {
    OTEL_TRACES_SAMPLER: 'sometimes',
    OTEL_TRACES_SAMPLER_ARG: '2',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_BSP_MAX_QUEUE_SIZE: '99999999',
    OTEL_EXPORTER_OTLP_TIMEOUT: 'soon',
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'anna:s3cret@collector',
  };
  for (const [name, value] of Object.entries(settings)) {
    const { spans, log } = await spansOf(() => traced('step', {}, async () => undefined), { [name]: value });
    expect(spans).toEqual([]);
    expect(log).toMatchObject([{ level: 'warn', event: 'Tracing', message: expect.stringContaining(name) }]);
    expect(log[0]?.message).not.toContain('s3cret');
  }
});

test('tracing is off without a collector, and where the standard variables turn it off', async () => {
  for (const environment of [
    { OTEL_EXPORTER_OTLP_ENDPOINT: '' },
    { OTEL_SDK_DISABLED: 'TRUE' },
    { OTEL_TRACES_EXPORTER: 'none' },
  ]) {
    const { spans, log } = await spansOf(() => traced('step', {}, async () => currentTrace()), environment);
    expect({ spans, log }).toEqual({ spans: [], log: [] });
  }
});
