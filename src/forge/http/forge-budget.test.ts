import { expect, test } from 'vitest';
import { isSluiceError, type SluiceError } from '../../foundation/sluice-error.ts';
import { ManualClock, settle } from '../../foundation/time/manual-clock.ts';
import type { ForgeErrorDetails } from '../forge.ts';
import { ForgeBudget, type ForgeRequestRecord, forgeRequests } from './forge-budget.ts';
import { ForgeBudgets } from './forge-budgets.ts';
import type { ForgeResponse, Method } from './forge-response.ts';

const NO_SIGNAL = new AbortController().signal;
const DONE: ForgeResponse = { status: 200, headers: {}, text: '' };
const LIMITED: ForgeResponse = { status: 403, headers: {}, text: 'You have exceeded a secondary rate limit' };

const counts = (method: Method) => method === 'POST' || method === 'PUT';

function start(content?: { perMinute: number; perHour: number }) {
  const clock = new ManualClock();
  const options = { clock, host: 'git.example.com', name: 'Secret default/forge', account: 'user' };
  const budget = new ForgeBudget({ ...options, ...(content === undefined ? {} : { content: { ...content, counts } }) });
  const pausedMs = () => budget.usage.resources[0]?.pausedMs ?? 0;
  let sent = 0;
  const send = (response: ForgeResponse | Promise<ForgeResponse> = DONE, method: Method = 'GET', signal = NO_SIGNAL) =>
    budget.run({ what: 'GET /pulls', url: 'https://git.example.com/pulls', method, signal }, async () => {
      sent += 1;
      return response;
    });
  return { clock, budget, pausedMs, send, sent: () => sent };
}

async function failure(call: Promise<unknown>): Promise<SluiceError<ForgeErrorDetails>> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!isSluiceError(error)) throw error ?? new Error('it was expected to fail');
  return error as SluiceError<ForgeErrorDetails>;
}

test('one limit pauses all requests of the account for the time that the host requires, and sends none', async () => {
  const { clock, pausedMs, send, sent } = start();
  expect((await send({ status: 429, headers: { 'retry-after': '7' }, text: '' })).status).toBe(429);
  clock.advance(2000);
  const { code, details, message } = await failure(send());
  expect([code, details]).toEqual(['TooManyRequests', { retryAfterMs: 5000 }]);
  expect(message).toBe('GET /pulls: not sent, as the host limits Secret default/forge; it is repeated in 5 s');
  expect([sent(), pausedMs()]).toEqual([1, 5000]);
  clock.advance(5000);
  expect(await send()).toBe(DONE);
  expect(pausedMs()).toBe(0);
});

test('a wall clock that was set ahead and back makes neither a pause nor a limit of content longer', async () => {
  const { clock, pausedMs, send } = start({ perMinute: 1, perHour: 10 });
  clock.setBy(86_400_000);
  await send(DONE, 'POST');
  await send({ status: 429, headers: { 'retry-after': '7' }, text: '' });
  clock.setBy(-86_400_000);
  expect(pausedMs()).toBe(7000);
  expect((await failure(send())).details).toEqual({ retryAfterMs: 7000 });
  clock.advance(7000);
  expect(await send()).toBe(DONE);
  expect((await failure(send(DONE, 'POST'))).details).toEqual({ retryAfterMs: 53_000 });
  clock.advance(53_000);
  expect(await send(DONE, 'POST')).toBe(DONE);
});

test('after a pause one request goes first, and the others follow only if the limit has ended', async () => {
  const { clock, send, sent } = start();
  await send({ status: 429, headers: { 'retry-after': '1' }, text: '' });
  clock.advance(1000);
  const first = Promise.withResolvers<ForgeResponse>();
  const probe = send(first.promise);
  const others = Array.from({ length: 30 }, () => failure(send()));
  await settle();
  expect(sent()).toBe(2);
  first.resolve(LIMITED);
  expect((await probe).status).toBe(403);
  for (const { code } of await Promise.all(others)) expect(code).toBe('TooManyRequests');
  expect(sent()).toBe(2);

  clock.advance(3_600_000);
  const second = Promise.withResolvers<ForgeResponse>();
  const again = [send(second.promise), ...Array.from({ length: 30 }, () => send())];
  await settle();
  expect(sent()).toBe(3);
  second.resolve(DONE);
  await Promise.all(again);
  expect(sent()).toBe(33);
});

test('a limit without a time doubles the pause, up to an hour, and a success ends that', async () => {
  const { clock, pausedMs, send } = start();
  const pauses: number[] = [];
  for (let turn = 0; turn < 8; turn += 1) {
    await send(LIMITED);
    pauses.push(pausedMs() / 60_000);
    clock.advance(pausedMs());
  }
  expect(pauses).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
  await send();
  await send(LIMITED);
  expect(pausedMs()).toBe(60_000);
});

test('requests in progress that report the same limit lengthen it once', async () => {
  const { pausedMs, send } = start();
  await Promise.all(Array.from({ length: 8 }, () => send(LIMITED)));
  expect(pausedMs()).toBe(60_000);
});

test('a failure of the first request after a pause does not block the others', async () => {
  const { clock, send } = start();
  await send(LIMITED);
  clock.advance(60_000);
  await expect(send(Promise.reject(new Error('cut')))).rejects.toThrow('cut');
  expect(await send()).toBe(DONE);
});

test('the primary limit pauses before the host has to refuse', async () => {
  const { clock, budget, send, sent } = start();
  const headers = (remaining: number) => ({
    'x-ratelimit-remaining': String(remaining),
    'x-ratelimit-limit': '5000',
    'x-ratelimit-reset': String(clock.now() / 1000 + 90),
  });
  await send({ ...DONE, headers: headers(1) });
  expect(budget.usage.resources).toMatchObject([
    { resource: 'core', rate: { remaining: 1, limit: 5000 }, pausedMs: 0 },
  ]);
  await send({ ...DONE, headers: headers(0) });
  expect((await failure(send())).details?.retryAfterMs).toBe(90_000);
  expect(sent()).toBe(2);
});

test('at most ten requests run at once, without those that hang', async () => {
  const { clock, send, sent } = start();
  const hanging = Promise.withResolvers<ForgeResponse>();
  const all = Array.from({ length: 15 }, () => send(hanging.promise));
  await settle();
  expect(sent()).toBe(10);
  await clock.advanceAsync(2000);
  expect(sent()).toBe(15);
  hanging.resolve(DONE);
  await Promise.all(all);
});

test('requests that create content wait for their turn, and for a longer time are rejected with it; reads go on', async () => {
  const { clock, budget, send, sent } = start({ perMinute: 3, perHour: 5 });
  for (let turn = 0; turn < 3; turn += 1) await send(DONE, 'POST');
  const { code, details, message } = await failure(send(DONE, 'POST'));
  expect([code, details]).toEqual(['TooManyRequests', { retryAfterMs: 60_000 }]);
  expect(message).toContain('may create content 3 times in a minute and 5 times in an hour; it is repeated in 60 s');
  await send();
  await send(DONE, 'PATCH');
  expect([sent(), budget.usage.content]).toEqual([5, { minute: 3, hour: 3 }]);
  clock.advance(57_000);
  const waiting = send(DONE, 'PUT');
  await settle();
  expect(sent()).toBe(5);
  await clock.advanceAsync(3000);
  await waiting;
  await send(DONE, 'POST');
  expect(budget.usage.content).toEqual({ minute: 2, hour: 5 });
  expect((await failure(send(DONE, 'POST'))).details?.retryAfterMs).toBe(3_600_000 - 60_000);
  clock.advance(3_600_000);
  expect(budget.usage.content).toEqual({ minute: 0, hour: 0 });
  await send(DONE, 'POST');
});

test('requests that a pause or the end of the caller keeps from being sent do not count as those that created content', async () => {
  const { budget, send } = start({ perMinute: 20, perHour: 20 });
  const limited = Promise.withResolvers<ForgeResponse>();
  const running = Array.from({ length: 10 }, () => send(limited.promise, 'POST'));
  const controller = new AbortController();
  const others = [...Array.from({ length: 4 }, () => failure(send(DONE, 'POST')))];
  const ended = send(DONE, 'POST', controller.signal).catch(() => undefined);
  await settle();
  expect(budget.usage.content.minute).toBe(15);
  controller.abort(new Error('the caller ends'));
  await ended;
  limited.resolve(LIMITED);
  await Promise.all([...running, ...others]);
  expect(budget.usage.content).toEqual({ minute: 10, hour: 10 });
});

test('a caller that ends does not wait for its turn', async () => {
  const { clock, send, sent } = start({ perMinute: 1, perHour: 500 });
  await send(DONE, 'POST');
  clock.advance(56_000);
  const controller = new AbortController();
  const waiting = send(DONE, 'POST', controller.signal);
  await settle();
  controller.abort(new Error('the caller ends'));
  await expect(waiting).rejects.toThrow('the caller ends');
  expect(sent()).toBe(1);
});

test('repositories with the same account share a budget, other accounts have their own', async () => {
  const budgets = new ForgeBudgets(new ManualClock());
  const of = (account: string, api = 'https://api.github.com') => budgets.of({ api, account, name: 'Secret a/b' });
  expect(of('app 1 acme')).toBe(of('app 1 acme'));
  expect(of('app 1 other')).not.toBe(of('app 1 acme'));
  expect(of('app 1 acme', 'https://git.example.com/api/v3')).not.toBe(of('app 1 acme'));
});

test('requests are published with their outcome', async () => {
  const { clock, send } = start({ perMinute: 1, perHour: 1 });
  const seen: string[] = [];
  let last: ForgeRequestRecord | undefined;
  const end = forgeRequests.subscribe((record) => {
    if (record.host !== 'git.example.com') return;
    seen.push(record.outcome);
    last = record;
  });
  await send({ ...DONE, status: 304 });
  await send(DONE, 'POST');
  await failure(send(DONE, 'POST'));
  await send(Promise.reject(new Error('cut'))).catch(() => undefined);
  await send(LIMITED);
  end();
  expect(seen).toEqual(['not_modified', 'answered', 'delayed', 'failed', 'limited']);
  clock.advance(1000);
  expect(last?.usage()).toEqual({
    resources: [{ resource: 'core', rate: undefined, pausedMs: 59_000 }],
    content: { minute: 1, hour: 1 },
  });
});
