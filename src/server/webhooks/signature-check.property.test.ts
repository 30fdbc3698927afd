import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { SignatureCheck } from './signature-check.ts';

const NOW = Date.UTC(2026, 0, 1);
const SECRET = 'a secret of some length';
const KEY = Buffer.from('0123456789abcdef0123456789abcdef');
const TIME = String(NOW / 1000);

type Headers = Readonly<Record<string, string>>;

function holds(headers: Headers, body: Buffer, secrets: readonly string[] = [SECRET], now = NOW): boolean {
  const check = new SignatureCheck(headers, secrets, now);
  const half = body.length >> 1;
  check.update(body.subarray(0, half));
  check.update(body.subarray(half));
  return check.isValid();
}

const hmac = (key: string | Buffer, ...parts: (string | Buffer)[]) => {
  const hash = createHmac('sha256', key);
  for (const part of parts) hash.update(part);
  return hash;
};

const standard = (body: Buffer, key: string | Buffer, time = TIME) => ({
  'webhook-id': 'msg_1',
  'webhook-timestamp': time,
  'webhook-signature': `v1,${hmac(key, `msg_1.${time}.`, body).digest('base64')}`,
});

/** What each kind of sender sends, with the secret that it has. */
const SENDERS: Readonly<Record<string, { sign(body: Buffer): Headers; readonly secret: string }>> = {
  GitHub: {
    sign: (body) => ({ 'x-hub-signature-256': `sha256=${hmac(SECRET, body).digest('hex')}` }),
    secret: SECRET,
  },
  Gitea: {
    sign: (body) => {
      const hex = hmac(SECRET, body).digest('hex');
      return { 'x-gitea-signature': hex, 'x-gogs-signature': hex, 'x-hub-signature-256': `sha256=${hex}` };
    },
    secret: SECRET,
  },
  Forgejo: { sign: (body) => ({ 'x-forgejo-signature': hmac(SECRET, body).digest('hex') }), secret: SECRET },
  'GitLab, signed': { sign: (body) => standard(body, KEY), secret: `whsec_${KEY.toString('base64')}` },
  'standard, plain key': { sign: (body) => standard(body, SECRET), secret: SECRET },
  generic: {
    sign: (body) => ({
      'x-sluice-timestamp': TIME,
      'x-sluice-signature': `sha256=${hmac(SECRET, `${TIME}.`, body).digest('hex')}`,
    }),
    secret: SECRET,
  },
};

const bodies = fc.uint8Array({ minLength: 1, maxLength: 200 }).map((bytes) => Buffer.from(bytes));

function flipped(bytes: Buffer, bit: number): Buffer {
  const copy = Buffer.from(bytes);
  const index = (bit >> 3) % copy.length;
  copy[index] = (copy[index] ?? 0) ^ (1 << (bit & 7));
  return copy;
}

describe.each(Object.entries(SENDERS))('%s', (_, { sign, secret }) => {
  test('what was signed is taken, with any flipped bit of the body or a header it is not', () => {
    fc.assert(
      fc.property(bodies, fc.nat(), fc.nat(), (body, bit, pick) => {
        const headers = sign(body);
        expect(holds(headers, body, [secret])).toBe(true);
        expect(holds(headers, body, ['an older secret', secret])).toBe(true);
        expect(holds(headers, flipped(body, bit), [secret])).toBe(false);
        const names = Object.keys(headers);
        const name = names[pick % names.length] ?? '';
        const changed = flipped(Buffer.from(headers[name] ?? '', 'latin1'), bit).toString('latin1');
        expect(holds({ ...headers, [name]: changed }, body, [secret])).toBe(false);
      }),
      { numRuns: runs(100) },
    );
  });

  test('without the secret, or with another one, nothing is right', () => {
    fc.assert(
      fc.property(bodies, fc.array(fc.string({ minLength: 1 }), { maxLength: 3 }), (body, others) => {
        const wrong = others.filter((other) => other !== secret);
        expect(holds(sign(body), body, wrong)).toBe(false);
      }),
      { numRuns: runs(100) },
    );
  });

  test('a header that is missing, empty or cut is no proof', () => {
    const body = Buffer.from('{}');
    const headers = sign(body);
    for (const name of Object.keys(headers)) {
      expect(holds({ ...headers, [name]: '' }, body, [secret])).toBe(false);
      expect(holds({ ...headers, [name]: (headers[name] ?? '').slice(0, -1) }, body, [secret])).toBe(false);
    }
    expect(holds({}, body, [secret])).toBe(false);
  });
});

test('a token is the secret itself, and any other text is not', () => {
  expect(holds({ 'x-gitlab-token': SECRET }, Buffer.from('{}'))).toBe(true);
  expect(holds({ 'x-gitlab-token': 'new one' }, Buffer.from('{}'), ['old one', 'new one'])).toBe(true);
  fc.assert(
    fc.property(fc.string(), (text) => {
      fc.pre(text !== SECRET);
      expect(holds({ 'x-gitlab-token': text }, Buffer.from('{}'))).toBe(false);
    }),
    { numRuns: runs(100) },
  );
});

test('every proof must be right: a good one does not make up for a bad one', () => {
  const body = Buffer.from('{}');
  const good = SENDERS.GitHub?.sign(body) ?? {};
  for (const bad of ['x-gitlab-token', 'x-gitea-signature', 'webhook-signature', 'x-sluice-signature'])
    expect(holds({ ...good, [bad]: 'bad' }, body)).toBe(false);
});

test.each(['GitLab, signed', 'generic'])('%s: a signed time counts for five minutes, either way', (name) => {
  const { sign, secret } = SENDERS[name] ?? SENDERS.GitHub ?? { sign: () => ({}), secret: '' };
  const body = Buffer.from('refs/heads/main');
  const at = (minutes: number) => holds(sign(body), body, [secret], NOW + minutes * 60_000);
  expect([-6, -5, 0, 5, 6, 24 * 60, -24 * 60].map(at)).toEqual([false, true, true, true, false, false, false]);
});

test('several signatures are for a secret that is being renewed', () => {
  const body = Buffer.from('{}');
  const { 'webhook-signature': right, ...rest } = standard(body, SECRET);
  const wrong = standard(body, 'another')['webhook-signature'];
  const all = (...list: string[]) => holds({ ...rest, 'webhook-signature': list.join(' ') }, body);
  expect(all(wrong, right)).toBe(true);
  expect(all(wrong, wrong)).toBe(false);
  expect(all(wrong, wrong, wrong, wrong, right)).toBe(false);
});

test('a prefix without a key does not count as an empty key', () => {
  const body = Buffer.from('{}');
  expect(holds(standard(body, ''), body, ['whsec_'])).toBe(false);
});
