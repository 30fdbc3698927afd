import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { HostRules } from '../../src/git/network/host-rules.ts';
import { secretKind } from '../../src/resource/kinds/core/secret.ts';
import { analysisRunKind } from '../../src/resource/kinds/sluice/wave/analysis-run.ts';
import { analysisTemplateKind } from '../../src/resource/kinds/sluice/wave/analysis-template.ts';
import { type KeyPair, serverCertificate } from '../../test/support/server-certificate.ts';
import { objectBench } from '../testing-objects.ts';
import { analysisController } from './analysis-controller.ts';
import { describeRun } from './describe-run.ts';
import { fetchJson } from './fetch-json.ts';

interface Received {
  readonly url: string;
  readonly authorization: string | undefined;
  readonly body: string;
}

type Answer = (response: ServerResponse, request: Received) => void;

const START = Date.parse('2030-01-01T00:00:00Z');
const vector = (...values: string[]) =>
  JSON.stringify({
    status: 'success',
    data: { resultType: 'vector', result: values.map((value) => ({ metric: {}, value: [1, value] })) },
  });

/** Objects in memory with the controller, whose sources are servers on this machine. */
async function bench(answer: Answer, certificate?: KeyPair) {
  const received: Received[] = [];
  const handle = (request: IncomingMessage, response: ServerResponse) =>
    void text(request).then((body) => {
      const one = { url: request.url ?? '', authorization: request.headers.authorization, body };
      received.push(one);
      answer(response, one);
    });
  const server =
    certificate === undefined
      ? createServer(handle)
      : createTlsServer({ cert: certificate.certificate, key: certificate.key }, handle);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = `http${certificate === undefined ? '' : 's'}://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const manual = new ManualClock(START);
  let offset = 0;
  const clock = {
    now: () => manual.now() + offset,
    monotonic: () => manual.monotonic(),
    schedule: (delay: number, action: () => void) => manual.schedule(delay, action),
  };
  const objects = objectBench(clock);
  const { client, manager } = objects;
  manager.addController(
    analysisController({ client, clock, fetch: fetchJson({ hosts: new HostRules(['127.0.0.1']) }) }),
  );
  await manager.start();
  onTestFinished(async () => {
    await objects[Symbol.asyncDispose]();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const status = async (name = 'r') => (await client.get(analysisRunKind, { name })).status;
  return {
    ...{ ...objects, address, received, status },
    /** Lets time pass once the controller waits for it. */
    async advance(milliseconds: number) {
      await expect.poll(() => manager.waiting().length).toBeGreaterThan(0);
      manual.advance(milliseconds);
    },
    /** Sets the clock without time passing. */
    jump(milliseconds: number) {
      offset += milliseconds;
    },
    template: (metric: object, part: object = {}) =>
      client.create(analysisTemplateKind, {
        metadata: { name: 't' },
        spec: {
          metrics: [{ name: 'errors', provider: { prometheus: { address, query: 'up' } }, ...metric } as never],
          ...part,
        },
      }),
    run: (spec: object = {}, name = 'r') =>
      client.create(analysisRunKind, { metadata: { name }, spec: { templateRef: { name: 't' }, ...spec } }),
    until: (phase: string, name = 'r') => expect.poll(async () => (await status(name))?.phase).toBe(phase),
  };
}

test('a run measures at its interval and ends', async () => {
  const b = await bench((response) => response.end(vector('0.01')));
  await b.template({ interval: '1m', count: 3, successCondition: 'result[0] < 0.05' });
  await b.run();
  for (let taken = 1; taken < 3; taken += 1) {
    await expect.poll(async () => (await b.status())?.metricResults?.[0]?.count).toBe(taken);
    expect((await b.status())?.phase).toBe('Running');
    await b.advance(60_000);
  }
  await b.until('Successful');
  const status = await b.status();
  expect(status).toMatchObject({ startedAt: '2030-01-01T00:00:00.000Z', completedAt: '2030-01-01T00:02:00.000Z' });
  expect(status?.conditions).toMatchObject([{ type: 'Complete', status: 'True', reason: 'Successful' }]);
  expect(b.received).toHaveLength(3);
  expect(b.received[0]).toMatchObject({ url: '/api/v1/query', body: 'query=up' });
  expect(b.errors).toEqual([]);
});

test.each<[string, Answer, string, RegExp]>([
  ['a false condition', (response) => response.end(vector('0.2')), 'Failed', /\[0\.2\] \(not result\[0\] < 0\.05\)/],
  ['an empty result', (response) => response.end(vector()), 'Inconclusive', /the result is empty/],
  ['NaN', (response) => response.end(vector('NaN')), 'Inconclusive', /the result is NaN/],
  ['500', (response) => response.writeHead(500).end('boom'), 'Error', /it returned 500$/],
  ['nonsense', (response) => response.end('<html>'), 'Error', /the response is no JSON/],
  ['other JSON', (response) => response.end('[]'), 'Error', /no response of the query API/],
  [
    'a redirect',
    (response) => response.writeHead(302, { location: 'http://169.254.169.254/' }).end(),
    'Error',
    /a redirect, which is not followed/,
  ],
  ['10 MB', (response) => response.end(`"${'x'.repeat(10_000_000)}"`), 'Error', /more than 1048576 bytes/],
  ['a broken connection', (response) => response.destroy(), 'Error', /cannot read from http:\/\/127\.0\.0\.1/],
  ['a hang', () => undefined, 'Error', /it did not respond in time/],
  [
    'a body without end',
    (response) => void response.writeHead(200).write('{"status":'),
    'Error',
    /it did not respond in time/,
  ],
])('%s is no success', async (_what, answer, phase, message) => {
  const b = await bench(answer);
  const timeout = message.source.includes('in time') ? '300ms' : '30s';
  await b.template({
    ...{ successCondition: 'result[0] < 0.05', consecutiveErrorLimit: 0 },
    provider: { prometheus: { address: b.address, query: 'up', timeout } },
  });
  await b.run();
  await b.until(phase);
  expect((await b.status())?.message).toMatch(message);
  expect(b.received).toHaveLength(1);
  await expect.poll(() => b.events('r')).toEqual([expect.stringMatching(`^${phase}: Metric "errors" assessed`)]);
});

test('after an error the source is tried again 10 s later, whatever the interval is', async () => {
  let isDown = true;
  const b = await bench((response) => (isDown ? response.writeHead(503).end() : response.end(vector('1'))));
  await b.template({ interval: '1h', count: 1 });
  await b.run();
  await expect.poll(async () => (await b.status())?.metricResults?.[0]?.error).toBe(1);
  isDown = false;
  expect((await b.status())?.message).toMatch(/^measures errors after 0 measurements \(last: .*503\)/);
  await b.advance(10_000);
  await b.until('Successful');
});

test('a clock that goes back does not stop a run', async () => {
  const b = await bench((response) => response.end(vector('1')));
  await b.template({ interval: '1m', count: 2 });
  const hour = 3_600_000;
  await b.run();
  await expect.poll(async () => (await b.status())?.metricResults?.[0]?.count).toBe(1);
  b.jump(-hour);
  await b.advance(60_000);
  await b.until('Successful');
});

test('a clock that jumps ahead neither shortens an interval nor ends an initial delay', async () => {
  const clock = new ManualClock(START);
  await using objects = objectBench(clock);
  const { client } = objects;
  let requests = 0;
  const fetch = async () => {
    requests += 1;
    return JSON.parse(vector('1'));
  };
  const { reconcile } = analysisController({ client, clock, fetch });
  const metric = { name: 'errors', provider: { prometheus: { address: 'https://metrics.example', query: 'up' } } };
  await client.create(analysisTemplateKind, {
    metadata: { name: 't' },
    spec: { metrics: [{ ...metric, interval: '10m', count: 2, initialDelay: '30m' } as never] },
  });
  await client.create(analysisRunKind, { metadata: { name: 'r' }, spec: { templateRef: { name: 't' } } });
  const context = { signal: new AbortController().signal, failures: 0 };
  const after = async (milliseconds: number, setBy: number) => {
    clock.advance(milliseconds);
    clock.setBy(setBy);
    const key = { namespace: 'default', name: 'r' };
    const { requeueAfter } = (await reconcile(key, context)) ?? {};
    return { requests, requeueAfter };
  };
  const [second, hour] = [1000, 3_600_000];
  await after(0, 0);
  expect(await after(2 * second, hour)).toEqual({ requests: 0, requeueAfter: 1798 * second });
  expect(await after(1798 * second, -hour)).toEqual({ requests: 1, requeueAfter: 600 * second });
  for (const [passed, setBy] of [
    [1, hour],
    [1, -2 * hour],
    [1, hour],
  ] as const)
    expect((await after(passed * second, setBy)).requests).toBe(1);
  expect(await after(597 * second, -hour)).toEqual({ requests: 2, requeueAfter: undefined });
  expect((await client.get(analysisRunKind, { name: 'r' })).status?.phase).toBe('Successful');
});

test('both groups of targets are measured, with names that cannot change the query', async () => {
  const b = await bench((response, { body }) => response.end(vector(body.includes('edge1') ? '0.2' : '0.1')));
  const query = 'errors{site=~"{{targets}}",job="{{args.job}}"}';
  await b.template(
    {
      ...{ compareWithUntouched: true, successCondition: 'canary[0] <= baseline[0] * 1.5' },
      provider: { prometheus: { address: b.address, query } },
    },
    { args: [{ name: 'job', value: 'web' }] },
  );
  const targets = { canary: ['edge1.example.com', 'edge1b'], untouched: ['edge2'] };
  await b.run({ scope: { plan: 'p', wave: 'canary', targets } });
  await b.until('Failed');
  expect(b.received.map(({ body }) => new URLSearchParams(body).get('query')).sort()).toEqual([
    'errors{site=~"edge1[.]example[.]com|edge1b",job="web"}',
    'errors{site=~"edge2",job="web"}',
  ]);
  await b.run({ scope: { targets: { canary: ['edge1'] } } }, 'last');
  await b.until('Inconclusive', 'last');
  expect((await b.status('last'))?.message).toContain('names no target to compare with');
});

test('a token is sent and never shown, even if the source returns it', async () => {
  const b = await bench((response, { authorization }) =>
    response.end(JSON.stringify({ you: authorization?.slice('Bearer '.length) })),
  );
  await b.client.create(secretKind, { metadata: { name: 's' }, stringData: { token: 'correct-horse' } });
  const http = { url: `${b.address}/echo`, jsonPath: '{$.you}', secretRef: { name: 's' } };
  await b.template({ successCondition: 'result == 1.0', consecutiveErrorLimit: 0, provider: { http } });
  await b.run();
  await b.until('Failed');
  expect(b.received[0]?.authorization).toBe('Bearer correct-horse');
  expect(JSON.stringify([await b.status(), await b.events('r')])).not.toContain('correct-horse');
});

test('the password of a source, and what is sent of it, is in no status and no event', async () => {
  const b = await bench((response, { authorization }) =>
    response.end(JSON.stringify({ sent: authorization, decoded: 'my-pass:word and correct-horse' })),
  );
  const stringData = { username: 'anna', password: 'my-pass:word' };
  await b.client.create(secretKind, { metadata: { name: 's' }, type: 'kubernetes.io/basic-auth', stringData });
  const http = { url: `${b.address}/echo`, value: 'body.sent + body.decoded', basicAuthSecretRef: { name: 's' } };
  await b.template({ successCondition: 'result == 1.0', consecutiveErrorLimit: 0, provider: { http } });
  await b.run();
  await b.until('Failed');
  const encoded = Buffer.from('anna:my-pass:word').toString('base64');
  expect(b.received[0]?.authorization).toBe(`Basic ${encoded}`);
  const shown = JSON.stringify([await b.status(), await b.events('r')]);
  expect(shown).toContain('correct-horse');
  expect(shown).not.toContain('my-pass');
  expect(shown).not.toContain(encoded);

  await b.client.patch(secretKind, { name: 's' }, { stringData: { username: 'a:b' } });
  await b.run({}, 'colon');
  await b.until('Error', 'colon');
  expect((await b.status('colon'))?.message).toContain('the username in Secret s, which basicAuthSecretRef of');
});

test('a certificate of an unknown authority is an error, unless the provider names the authority, or verifies none and is reported', async () => {
  const { authority, server } = await serverCertificate('127.0.0.1');
  const b = await bench((response) => response.end(vector('1')), server);
  await b.client.create(secretKind, { metadata: { name: 'ca' }, stringData: { 'ca.crt': authority.certificate } });
  await b.client.create(secretKind, { metadata: { name: 's' }, stringData: { token: 'correct-horse' } });
  const change = (part: object) =>
    b.client.patch(
      analysisTemplateKind,
      { name: 't' },
      {
        spec: {
          metrics: [
            {
              name: 'errors',
              consecutiveErrorLimit: 0,
              provider: { prometheus: { address: b.address, query: 'up', ...part } },
            },
          ],
        },
      },
    );
  await b.template({ consecutiveErrorLimit: 0 });
  await b.run({}, 'strict');
  await b.until('Error', 'strict');
  expect((await b.status('strict'))?.message).toMatch(/cannot read from https:.*certificate/);
  expect(b.received).toEqual([]);
  await change({ caSecretRef: { name: 'ca' } });
  await b.run({}, 'named');
  await b.until('Successful', 'named');
  expect(await b.events('named')).toEqual([expect.stringMatching(/^Successful: /)]);
  await change({ insecure: true, secretRef: { name: 's' } });
  await b.run({}, 'insecure');
  await b.until('Successful', 'insecure');
  expect(b.received.at(-1)?.authorization).toBe('Bearer correct-horse');
  expect(await b.events('insecure')).toContainEqual(
    expect.stringMatching(
      /^InsecureSource: .*are not verified \(insecure\).*: errors; name the authority in caSecretRef/,
    ),
  );
  await expect(change({ insecure: true, caSecretRef: { name: 'ca' } })).rejects.toThrow(
    'spec.metrics[0].provider.prometheus: Invalid value',
  );
  await expect(change({ secretRef: { name: 's' }, basicAuthSecretRef: { name: 's' } })).rejects.toThrow(
    'must have at most one of secretRef and basicAuthSecretRef',
  );
});

test('a missing Secret and a refused host are errors that name the next step', async () => {
  const b = await bench((response) => response.end(vector('1')));
  const prometheus = { address: b.address, query: 'up', secretRef: { name: 'none' } };
  await b.template({ consecutiveErrorLimit: 0, provider: { prometheus } });
  await b.run();
  await b.until('Error');
  expect((await b.status())?.message).toContain('Secret default/none, which secretRef of the provider refers to, does');
  await b.client.patch(
    analysisTemplateKind,
    { name: 't' },
    {
      spec: {
        metrics: [
          {
            name: 'errors',
            consecutiveErrorLimit: 0,
            provider: { http: { url: 'http://169.254.169.254/', jsonPath: '$' } },
          },
        ],
      },
    },
  );
  await b.run({}, 'metadata');
  await b.until('Error', 'metadata');
  expect((await b.status('metadata'))?.message).toContain('local address');
  expect(b.received).toEqual([]);
});

test('a run waits for its template and for arguments, and begins again when the template changes', async () => {
  const b = await bench((response) => response.end(vector('1')));
  await b.run();
  await expect.poll(async () => (await b.status())?.message).toBe('AnalysisTemplate t does not exist; create it');
  const [run] = (await b.client.list(analysisRunKind)).items;
  expect(run === undefined ? [] : describeRun(run).reasons).toContain(
    'it is Pending: AnalysisTemplate t does not exist; create it',
  );
  const prometheus = { address: b.address, query: 'up{job="{{args.job}}"}' };
  await b.template({ interval: '1h', count: 2, provider: { prometheus } }, { args: [{ name: 'job' }] });
  await expect.poll(async () => (await b.status())?.message).toContain('requires the arguments job');
  await b.client.patch(analysisTemplateKind, { name: 't' }, { spec: { args: [{ name: 'job', value: 'web' }] } });
  await expect.poll(async () => (await b.status())?.metricResults?.[0]?.count).toBe(1);
  await b.client.patch(analysisTemplateKind, { name: 't' }, { spec: { args: [{ name: 'job', value: 'api' }] } });
  await expect.poll(async () => (await b.status())?.template?.generation).toBe(3);
  expect((await b.status())?.metricResults?.[0]).toMatchObject({ count: 1 });
  await b.advance(3_600_000);
  await b.until('Successful');
  expect(b.received.map(({ body }) => new URLSearchParams(body).get('query'))).toEqual([
    'up{job="web"}',
    'up{job="api"}',
    'up{job="api"}',
  ]);
});

test('terminate ends a run that measures on and on', async () => {
  const b = await bench((response) => response.end(vector('1')));
  await b.template({ interval: '1m' });
  await b.run();
  await b.until('Running');
  await b.client.patch(analysisRunKind, { name: 'r' }, { spec: { terminate: true } });
  await b.until('Successful');
  expect((await b.status())?.message).toBe('terminated; no metric had failed');
});
