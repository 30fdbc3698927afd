import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { createWidget, MERGE_PATCH, send, startTestServer, type TestServer, WIDGETS, widgetBody } from '../testing.ts';
import type { Authorizer, RequestAttributes } from './authorizer.ts';

let api: TestServer;

afterEach(() => api.stop());

/** An authorizer that rejects for what `fails` selects, and allows everything else. */
function failing(fails: (attributes: RequestAttributes) => boolean, error: unknown): Authorizer {
  return {
    authorize: async (attributes) => {
      if (fails(attributes)) throw error;
      return { allowed: true, reason: '' };
    },
  };
}

async function statusOf(response: Response) {
  const { code, reason, message, details } = (await response.json()) as Record<string, unknown>;
  return { http: response.status, code, reason, message, details };
}

test('an authorizer that is unavailable makes each request fail with 503, and nothing is read or written', async () => {
  let fails = false;
  const outage = new SluiceError('Unavailable', 'the cluster does not respond');
  api = await startTestServer({ authorizer: failing(() => fails, outage) });
  await createWidget(api, 'a');
  fails = true;
  const requests = [
    api.fetch(WIDGETS),
    api.fetch(`${WIDGETS}?watch=true`),
    api.fetch(`${WIDGETS}/a`, { method: 'DELETE' }),
    send(api, 'POST', WIDGETS, widgetBody('b')),
    send(api, 'PATCH', `${WIDGETS}/a`, { spec: { size: 7 } }, MERGE_PATCH),
    api.fetch('/metrics'),
  ];
  for (const response of await Promise.all(requests)) {
    expect(response.headers.get('retry-after')).toBe('1');
    expect(await statusOf(response)).toMatchObject({ http: 503, code: 503, reason: 'ServiceUnavailable' });
  }
  const { message } = await statusOf(await api.fetch(`${WIDGETS}/a`));
  expect(message).toBe(
    'cannot authorize the request: whether User "admin" may get resource "widgets" in API group "test.sluice.dev" in the namespace "default" is not decided: the cluster does not respond; try again later',
  );
  fails = false;
  const list = (await (await api.fetch(WIDGETS)).json()) as { items: { metadata: object; spec: object }[] };
  expect(list.items).toMatchObject([{ metadata: { name: 'a' }, spec: { size: 1 } }]);
  expect(list.items).toHaveLength(1);
});

test('an authorizer with a defect makes the request fail with 500; the cause is in the log only', async () => {
  api = await startTestServer({ authorizer: failing(() => true, new TypeError('connect 10.1.2.3 refused')) });
  const status = await statusOf(await api.fetch(`${WIDGETS}/a`));
  expect(status).toMatchObject({ http: 500, reason: 'InternalError' });
  expect(status.message).toContain(
    'Internal error occurred: cannot authorize the request: whether User "admin" may get',
  );
  expect(status.message).not.toContain('10.1.2.3');
  expect(api.errors.map(String).join()).toContain('connect 10.1.2.3 refused');
});

test('only a decision that allows allows', async () => {
  // What a defective implementation may return.
  const decisions = [{ allowed: 'yes', reason: '' }, { reason: '' }, undefined] as unknown[];
  api = await startTestServer({ authorizer: { authorize: async () => decisions.shift() as never } });
  expect((await api.fetch(WIDGETS)).status).toBe(403);
  expect((await api.fetch(WIDGETS)).status).toBe(403);
  expect((await api.fetch(WIDGETS)).status).toBe(500);
});

test('an impersonation that cannot be authorized fails, as does the right to create of an apply', async () => {
  const outage = new SluiceError('Timeout', 'the cluster does not respond');
  let verb = 'impersonate';
  api = await startTestServer({ authorizer: failing((attributes) => attributes.verb === verb, outage) });
  const impersonated = await api.fetch(WIDGETS, { headers: { 'impersonate-user': 'root' } });
  expect(impersonated.status).toBe(503);
  verb = 'create';
  const applied = await send(
    api,
    'PATCH',
    `${WIDGETS}/new?fieldManager=m`,
    JSON.stringify(widgetBody('new')),
    'application/apply-patch+yaml',
  );
  expect(applied.status).toBe(503);
  expect((await api.fetch(`${WIDGETS}/new`)).status).toBe(404);
});

describe('an authorizer that never responds', () => {
  let hangs: (attributes: RequestAttributes) => boolean;
  let signals: (AbortSignal | undefined)[];
  let clock: ManualClock;

  beforeEach(async () => {
    hangs = () => true;
    signals = [];
    clock = new ManualClock();
  });

  const start = async () => {
    api = await startTestServer({
      authorizer: {
        authorize: (attributes, signal) => {
          signals.push(signal);
          return hangs(attributes) ? new Promise(() => undefined) : Promise.resolve({ allowed: true, reason: '' });
        },
      },
      limits: { openRequests: { maxRequestsOfUser: 3 } },
      clock,
    });
  };
  /** The statuses of as many requests as the user may have open, and three more; sorted. */
  const flood = async (init: RequestInit = {}) => {
    let refused = 0;
    const responses = Array.from({ length: 6 }, async () => {
      const { status } = await api.fetch(WIDGETS, init);
      if (status === 429) refused += 1;
      return status;
    });
    await expect.poll(() => refused + signals.length).toBe(6);
    clock.advance(60_000);
    return (await Promise.all(responses)).toSorted();
  };
  const HALF = [429, 429, 429, 504, 504, 504];

  test('keeps no request open after its time: the next ones are served', async () => {
    await start();
    expect(await flood()).toEqual(HALF);
    expect(signals.map((signal) => signal?.aborted)).toEqual([true, true, true]);
    hangs = () => false;
    expect((await api.fetch(WIDGETS)).status).toBe(200);
  });

  test('keeps none open either whose client left', async () => {
    await start();
    const leaving = new AbortController();
    const left = Array.from({ length: 3 }, () => api.fetch(WIDGETS, { signal: leaving.signal }).catch(() => 'left'));
    await expect.poll(() => signals.length).toBe(3);
    leaving.abort();
    expect(await Promise.all(left)).toEqual(['left', 'left', 'left']);
    hangs = () => false;
    await expect.poll(async () => (await api.fetch(WIDGETS)).status).toBe(200);
  });

  test('decides impersonations only for as many requests as the sender may have', async () => {
    hangs = ({ verb }) => verb === 'impersonate';
    await start();
    const headers = { 'impersonate-user': 'anna' };
    expect(await flood({ headers })).toEqual(HALF);
    expect(signals).toHaveLength(3);
    expect((await api.fetch(WIDGETS)).status).toBe(200);
  });

  test('in an admission keeps no slot', async () => {
    let admissions = 0;
    api = await startTestServer({
      admit: () => {
        admissions += 1;
        return new Promise(() => undefined);
      },
      clock,
    });
    const writes = ['a', 'b', 'c'].map((name) => send(api, 'POST', WIDGETS, widgetBody(name)));
    await expect.poll(() => admissions).toBe(3);
    clock.advance(60_000);
    expect((await Promise.all(writes)).map(({ status }) => status)).toEqual([504, 504, 504]);
    await expect.poll(() => api.server.load.mutating).toBe(0);
  });
});

test('an impersonated request counts to the user that it is judged as, and no longer to its sender', async () => {
  let settle: (() => void) | undefined;
  const settled = new Promise<void>((resolve) => {
    settle = resolve;
  });
  let waiting = 0;
  api = await startTestServer({
    authorizer: {
      authorize: async ({ user }) => {
        if (user.name === 'anna') {
          waiting += 1;
          await settled;
        }
        return { allowed: true, reason: '' };
      },
    },
    limits: { openRequests: { maxRequestsOfUser: 1 } },
  });
  const headers = { 'impersonate-user': 'anna' };
  const first = api.fetch(WIDGETS, { headers });
  await expect.poll(() => waiting).toBe(1);
  expect((await api.fetch(WIDGETS, { headers })).status).toBe(429);
  expect((await api.fetch(WIDGETS)).status).toBe(200);
  settle?.();
  expect((await first).status).toBe(200);
  expect((await api.fetch(WIDGETS, { headers })).status).toBe(200);
});
