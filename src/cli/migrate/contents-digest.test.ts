import { expect, test } from 'vitest';
import { contentsDigest, contentsView, differentFiles } from './contents-digest.ts';

test('the digest depends on paths and contents, not on their order', () => {
  const one = contentsView({ Kptfile: 'a', 'b.yaml': 'c' });
  expect(contentsDigest(one)).toBe(contentsDigest(contentsView({ 'b.yaml': 'c', Kptfile: 'a' })));
  expect(contentsDigest(one)).not.toBe(contentsDigest(contentsView({ Kptfile: 'a', 'b.yaml': 'd' })));
  expect(contentsDigest(one)).not.toBe(contentsDigest(contentsView({ Kptfile: 'a', 'd.yaml': 'c' })));
});

test('names each file that differs or is missing', () => {
  const porch = contentsView({ Kptfile: 'a', both: 'b', gone: 'c' });
  const sluice = contentsView({ Kptfile: 'a', both: 'd', added: 'e' });
  expect(differentFiles(porch, sluice)).toEqual(['added', 'both', 'gone']);
});

test('of a binary file, which Porch shows as text with lost bytes, only the presence counts', () => {
  const sluice = contentsView({ Kptfile: 'a' }, { 'logo.png': Buffer.from([0x89, 0xff]).toString('base64') });
  expect(differentFiles(contentsView({ Kptfile: 'a', 'logo.png': '\ufffd\ufffd' }), sluice)).toEqual([]);
  expect(differentFiles(contentsView({ Kptfile: 'a' }), sluice)).toEqual(['logo.png']);
});
