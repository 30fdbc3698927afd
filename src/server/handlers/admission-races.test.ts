import { afterEach, expect, test } from 'vitest';
import { createWidget, MERGE_PATCH, send, startTestServer, type TestServer, WIDGETS, widgetBody } from '../testing.ts';
import type { PlannedWrite } from './handler.ts';

let api: TestServer;

afterEach(() => api.stop());

const HELD = { spec: { size: 9 } };

/** Refuses to change or delete widgets of size 9. Before its first decision about `operation`, `meanwhile` happens. */
function admissionWith(operation: PlannedWrite['operation'], meanwhile: () => Promise<unknown>) {
  let isFirst = true;
  return async (write: PlannedWrite) => {
    if (write.user.name !== 'admin') return;
    const refuses = (write.old?.spec as { size?: number } | undefined)?.size === 9;
    if (write.operation === operation && isFirst) {
      isFirst = false;
      await meanwhile();
    }
    if (refuses) throw new Error('refused');
  };
}

const everyUser = { authorizer: { authorize: async () => ({ allowed: true, reason: '' }) } };

function patchAs(user: string, body: object): Promise<Response> {
  const headers = { 'content-type': MERGE_PATCH };
  return api.fetch(`${WIDGETS}/w`, { method: 'PATCH', headers, body: JSON.stringify(body) }, user);
}

test('a delete removes the state that was admitted: one that another writer made meanwhile is admitted again', async () => {
  const admit = admissionWith('delete', () => patchAs('other', HELD));
  api = await startTestServer({ ...everyUser, admit });
  await createWidget(api, 'w');
  const response = await api.fetch(`${WIDGETS}/w`, { method: 'DELETE' });
  expect(response.status).toBe(500);
  expect(await (await api.fetch(`${WIDGETS}/w`)).json()).toMatchObject(HELD);
});

test('a delete that another writer overtook succeeds if admission allows it again', async () => {
  const admit = admissionWith('delete', () => patchAs('other', { spec: { size: 3 } }));
  api = await startTestServer({ ...everyUser, admit });
  await createWidget(api, 'w');
  expect((await api.fetch(`${WIDGETS}/w`, { method: 'DELETE' })).status).toBe(200);
  expect((await api.fetch(`${WIDGETS}/w`)).status).toBe(404);
});

test('a delete of a collection admits again what changed meanwhile', async () => {
  const admit = admissionWith('delete', () => patchAs('other', HELD));
  api = await startTestServer({ ...everyUser, admit });
  await createWidget(api, 'w');
  expect((await api.fetch(WIDGETS, { method: 'DELETE' })).status).toBe(500);
  expect((await api.fetch(`${WIDGETS}/w`)).status).toBe(200);
});

test('an update that names a version of the future is a conflict before it is admitted', async () => {
  const admit = admissionWith('update', () => patchAs('other', HELD));
  api = await startTestServer({ ...everyUser, admit });
  const stored = await createWidget(api, 'w');
  const guessed = String(BigInt(stored.metadata.resourceVersion) + 1n);
  const body = widgetBody('w', { size: 2 }, { resourceVersion: guessed });
  const response = await send(api, 'PUT', `${WIDGETS}/w`, body);
  expect(response.status).toBe(409);
  expect(await (await api.fetch(`${WIDGETS}/w`)).json()).toMatchObject({ spec: { size: 1 } });
});

test('a write whose request ended while it was admitted is not stored', async () => {
  const admitted = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  const finished = Promise.withResolvers<void>();
  api = await startTestServer({
    ...everyUser,
    admit: async ({ operation }) => {
      if (operation !== 'update') return;
      reached.resolve();
      await admitted.promise;
    },
    limits: { requestTimeoutMs: 50 },
    onRequest: ({ verb }) => verb === 'patch' && finished.resolve(),
  });
  await createWidget(api, 'w');
  const answer = patchAs('admin', { spec: { size: 5 } });
  await reached.promise;
  expect((await answer).status).toBe(504);
  await finished.promise;
  admitted.resolve();
  // A later write of the same object comes after anything that the first one would still store.
  const after = await send(api, 'POST', WIDGETS, widgetBody('next'));
  expect(after.status).toBe(201);
  expect(await (await api.fetch(`${WIDGETS}/w`)).json()).toMatchObject({ spec: { size: 1 } });
});
