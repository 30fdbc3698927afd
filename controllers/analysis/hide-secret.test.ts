import { expect, test } from 'vitest';
import type { Client } from '../../src/resource/client/client.ts';
import { metricSchema } from '../../src/resource/kinds/sluice/wave/metric-schema.ts';
import { hideSecrets } from './hide-secret.ts';
import { takeMeasurement } from './take-measurement.ts';

const TOKEN = 'first"half-second-half';

test.each([
  ['that is cut', (token: string) => `${'x'.repeat(285)}${token}`],
  ['that is quoted', (token: string) => token],
])('no part of a token that the source returns is in a measurement: a value %s', async (_name, textOf) => {
  const secret = { data: { token: Buffer.from(TOKEN).toString('base64') } };
  const client = { find: async () => secret } as unknown as Client;
  const metric = metricSchema.parse({
    name: 'echo',
    successCondition: 'result == "good"',
    provider: { http: { url: 'https://metrics.example.com', jsonPath: '{$.text}', secretRef: { name: 'access' } } },
  });
  const found = await takeMeasurement(metric, {
    ...{ client, namespace: 'default', args: new Map(), targets: undefined, now: () => 0 },
    fetch: ({ headers }) => Promise.resolve({ text: textOf(headers.authorization?.slice('Bearer '.length) ?? '') }),
    signal: new AbortController().signal,
  });
  expect(found.phase).toBe('Failed');
  expect(JSON.stringify(found)).not.toContain('first');
});

test('names of fields are hidden too, and a response that is nested too deep is refused', () => {
  expect(hideSecrets({ [TOKEN]: [TOKEN, 1, null] }, [TOKEN])).toEqual({ '***': ['***', 1, null] });
  const deep: unknown = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`);
  expect(() => hideSecrets(deep, [TOKEN])).toThrow('nested more than 100 levels deep');
});

test.each(['first?>>half-second~half', 'short&ü8', 'a b+c/d=e%f'])('encoded forms of %s are hidden too', (secret) => {
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const lower = (text: string) => text.replaceAll(/%[0-9A-F]{2}/g, (hex) => hex.toLowerCase());
  const forms = [
    encodeURIComponent(secret),
    lower(encodeURIComponent(secret)),
    new URLSearchParams({ q: secret }).toString().slice(2),
    [...Buffer.from(secret)].map((byte) => `%${byte.toString(16)}`).join(''),
    ...['', 'u', 'us', 'user:'].flatMap((before) => [
      base64(before + secret),
      base64(`${before}${secret} and more`),
      Buffer.from(before + secret).toString('base64url'),
      encodeURIComponent(base64(before + secret)),
    ]),
  ];
  for (const form of forms) {
    const hidden = String(hideSecrets(`before ${form} after`, [secret]));
    expect(hidden).toMatch(/^before \S{0,8}\*\*\*\S{0,16} after$/);
  }
  expect(hideSecrets('nothing of it: Zmlyc3Q= %66%69', [secret])).toBe('nothing of it: Zmlyc3Q= %66%69');
});

test('a long secret is hidden, also one that is cut, and what resembles it costs little', () => {
  const token = `${'ab'.repeat(50_000)}c`;
  const base64 = Buffer.from(token).toString('base64');
  expect(hideSecrets([`is ${token}!`, base64, token.slice(0, 500)], [token])).toEqual(['is ***!', '***', '***']);
  // The length of the text times the length of the secret would be minutes, and end this test.
  hideSecrets(
    ['a'.repeat(1_000_000), `b${'a'.repeat(60)}`.repeat(16_000)],
    [`${'a'.repeat(100_000)}b`, `b${'a'.repeat(900)}`],
  );
});

test('texts around a secret stay as they are, whatever their encoding', () => {
  expect(hideSecrets(`%zz%4 ü %C3%BC ${TOKEN} \u{1f600}%41 ${encodeURIComponent(TOKEN)}`, [TOKEN])).toBe(
    '%zz%4 ü %C3%BC *** \u{1f600}%41 ***',
  );
});
