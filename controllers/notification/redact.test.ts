import { expect, test } from 'vitest';
import { redact } from './redact.ts';

test.each([
  ['cannot read https://me:hunter22@git.example.com/a.git', 'hunter22'],
  ['push with ghp_0123456789abcdefghijABCDEFGHIJ failed', 'ghp_'],
  ['token github_pat_11ABCDEFG0123456789_abc is refused', 'github_pat_'],
  ['glpat-0123456789abcdefghij expired', 'glpat-'],
  ['xoxb-123456789012-abcdefghijkl', 'xoxb-'],
  ['key AKIAIOSFODNN7EXAMPLE', 'AKIA'],
  ['Authorization: Bearer abc.def.ghijkl', 'ghijkl'],
  ['https://x.example.com/hook?sig=abcdef123456&a=b', 'abcdef123456'],
  ['password: correct-horse', 'correct-horse'],
  ['eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl', 'eyJ'],
  ['https://hooks.slack.com/services/T000/B000/XXXX', 'XXXX'],
  ['-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----', 'MIIE'],
  ['red \u001b[31mtext\u0007', '\u001b'],
])('%j leaves without its secret', (text, secret) => {
  expect(redact(text, 1000)).not.toContain(secret);
});

test('other text stays, and is bounded', () => {
  const text =
    'delivered commit 1234567890abcdef1234567890abcdef12345678 with apps/web v2; token of the Secret git is missing';
  expect(redact(text, 1000)).toBe(text);
  expect(redact('x'.repeat(100_000), 20)).toBe(`${'x'.repeat(19)}…`);
});
