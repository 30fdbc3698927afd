import { expect, test } from 'vitest';
import { parseCommit } from './commit-codec.ts';

const OID = 'b'.repeat(40);
const HEADERS = `tree ${'a'.repeat(40)}\nauthor a <a@x> 1 +0000\ncommitter a <a@x> 1 +0000\n`;

test('a header of very many lines is unfolded in the time of as many headers', () => {
  // Quadratic, it took minutes: more than a test has.
  const lines = 'a\n'.repeat(300_000).trimEnd();
  const data = Buffer.from(`${HEADERS}gpgsig ${lines.replaceAll('\n', '\n ')}\n\nmessage\n`);
  expect(parseCommit(data, OID)).toMatchObject({ signature: lines, message: 'message\n', author: { name: 'a' } });
});

test('headers beyond a mebibyte are not parsed', () => {
  for (const more of ['x y\n'.repeat(300_000), `x y\n${' a\n'.repeat(400_000)}`])
    for (const end of ['\nmessage\n', ''])
      expect(() => parseCommit(Buffer.from(`${HEADERS}${more}${end}`), OID)).toThrow(
        expect.objectContaining({ code: 'Corrupt' }),
      );
});
