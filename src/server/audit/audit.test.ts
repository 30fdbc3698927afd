import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createWidget, MERGE_PATCH, send, startTestServer, WIDGETS, widgetBody } from '../testing.ts';
import { AuditFile } from './audit-file.ts';
import { auditLine } from './audit-line.ts';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-audit-'));
});
afterEach(() => rm(folder, { recursive: true }));

const lines = async (path: string) => (await readFile(path, 'utf8')).split('\n').slice(0, -1);
const fail = (error: unknown) => {
  throw error;
};

test('every write is recorded once, with its outcome, and never what was written', async () => {
  const path = join(folder, 'audit.log');
  const file = new AuditFile({ path, onError: fail });
  const api = await startTestServer({
    onRequest: (record) => {
      const line = auditLine(record);
      if (line !== undefined) file.append(line);
    },
  });
  await createWidget(api, 'a', {}, { annotations: { note: 'hunter2' } });
  await send(api, 'PATCH', `${WIDGETS}/a/status?dryRun=All`, { status: { note: 'hunter2' } }, MERGE_PATCH);
  await send(api, 'POST', WIDGETS, widgetBody('a'));
  await api.fetch(WIDGETS);
  await api.fetch(`${WIDGETS}/a`, { method: 'DELETE' }, 'anna');
  await fetch(`${api.listener.url}${WIDGETS}/a`, { method: 'DELETE' });
  await api.stop();
  await file.close();
  const reported = (await lines(path)).map((line) => JSON.parse(line));
  const common = { group: 'test.sluice.dev', version: 'v1', resource: 'widgets', namespace: 'default', name: 'a' };
  expect(reported).toEqual(
    [
      { ...common, user: 'admin', verb: 'create', code: 201 },
      { ...common, user: 'admin', verb: 'patch', subResource: 'status', dryRun: true, code: 200 },
      { ...common, user: 'admin', verb: 'create', code: 409, reason: 'AlreadyExists' },
      { ...common, user: 'anna', verb: 'delete', code: 403, reason: 'Forbidden' },
    ].map((expected) => ({
      ...expected,
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      requestId: expect.any(String),
      groups: expect.any(Array),
      milliseconds: expect.any(Number),
    })),
  );
  expect(await readFile(path, 'utf8')).not.toMatch(/hunter2|Bearer/);
});

test("the file is its owner's alone, grows over restarts, and is rotated when it is large", async () => {
  const path = join(folder, 'audit.log');
  await writeFile(path, 'before\n', { mode: 0o644 });
  const file = new AuditFile({ path, maxBytes: 100, keep: 2, onError: fail });
  for (let index = 0; index < 12; index += 1) {
    file.append(`line ${index} ${'x'.repeat(30)}`);
    await file.flush();
  }
  await file.close();
  expect((await readdir(folder)).sort()).toEqual(['audit.log', 'audit.log.1', 'audit.log.2']);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  const kept = [...(await lines(`${path}.2`)), ...(await lines(`${path}.1`)), ...(await lines(path))];
  expect(kept.map((line) => Number(line.split(' ')[1]))).toEqual([6, 7, 8, 9, 10, 11]);
  for (const name of await readdir(folder)) expect((await stat(join(folder, name))).size).toBeLessThanOrEqual(100);
});

test('a disk that does not work is reported, with what was lost', async () => {
  const reported: string[] = [];
  const file = new AuditFile({
    path: join(folder, 'no', 'such', 'folder'),
    onError: (error) => reported.push(String(error)),
  });
  file.append('a');
  file.append('b');
  await file.close();
  expect([reported.at(0), reported.at(-1)]).toEqual([expect.stringContaining('ENOENT'), 'Error: 2 lines were lost']);
});
