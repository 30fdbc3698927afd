import { afterEach, beforeEach, expect, test } from 'vitest';
import { secretKind } from '../resource/kinds/core/secret.ts';
import type { Kind } from '../resource/schema/kind.ts';
import { MERGE_PATCH, send, startTestServer, type TestServer } from './testing.ts';

const SECRETS = '/api/v1/namespaces/default/secrets';
const HUNTER2 = Buffer.from('hunter2').toString('base64');

let api: TestServer;
beforeEach(async () => {
  api = await startTestServer({}, [secretKind as unknown as Kind]);
  await send(api, 'POST', SECRETS, { metadata: { name: 'a' }, data: { password: HUNTER2 } });
});
afterEach(() => api.stop());

test.each<[string, string, string, string]>([
  ['JSON that is none', 'POST', 'application/json', '{"stringData": hunter2}'],
  ['YAML that is none', 'POST', 'application/yaml', 'stringData:\n  password: hunter2\n  password: hunter2'],
  ['a patch with an unknown field', 'PATCH', MERGE_PATCH, '{"stringData":{"password":"hunter2"},"nope":1}'],
  ['a value of the wrong type', 'PATCH', MERGE_PATCH, '{"data":{"password":{"hunter2":1}},"type":["hunter2"]}'],
  ['data that are not encoded', 'PATCH', MERGE_PATCH, '{"data":{"password":"hunter2!"}}'],
  ['a patch of strings', 'PATCH', 'application/strategic-merge-patch+json', '{"data":["hunter2"]}'],
  [
    'a test of a value',
    'PATCH',
    'application/json-patch+json',
    '[{"op":"test","path":"/data/password","value":"hunter2"}]',
  ],
])('an error of a Secret does not contain the secret: %s', async (_what, method, type, body) => {
  const path = method === 'POST' ? SECRETS : `${SECRETS}/a`;
  const response = await send(api, method, `${path}?fieldValidation=Strict`, body, type);
  const text = await response.text();
  expect(response.status, text).toBeGreaterThanOrEqual(400);
  expect(response.status, text).toBeLessThan(500);
  expect(text).not.toContain('hunter2');
  expect(text).not.toContain(HUNTER2);
});
