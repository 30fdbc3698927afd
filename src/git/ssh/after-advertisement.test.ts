import fc from 'fast-check';
import { expect, test } from 'vitest';
import { pktLine } from '../transport/pkt-line.ts';
import { afterAdvertisement } from './after-advertisement.ts';

const FLUSH = Buffer.from('0000');

async function* inPieces(data: Buffer, cuts: readonly number[]): AsyncGenerator<Buffer> {
  let start = 0;
  for (const end of [...new Set(cuts)].sort((a, b) => a - b)) {
    if (end <= start || end >= data.length) continue;
    yield data.subarray(start, end);
    start = end;
  }
  yield data.subarray(start);
}

/** What comes through, and what of it had come before the service was told to begin. */
async function read(pieces: AsyncIterable<Buffer>): Promise<{ text: string; before: string | undefined }> {
  let text = '';
  let before: string | undefined;
  const begin = () => {
    before = text;
  };
  for await (const piece of afterAdvertisement(pieces, begin)) text += Buffer.from(piece).toString('latin1');
  return { text, before };
}

test('however it is cut, what follows the first flush comes through, and nothing before it', async () => {
  const lines = fc.array(fc.string({ minLength: 1, maxLength: 20 }), { maxLength: 5 });
  const cuts = fc.array(fc.nat(200), { maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(lines, fc.string(), cuts, async (advertised, rest, at) => {
      const answer = Buffer.from(rest).toString('latin1');
      const data = Buffer.concat([...advertised.map((line) => pktLine(line)), FLUSH, Buffer.from(rest)]);
      expect(await read(inPieces(data, at))).toEqual({ text: answer, before: '' });
    }),
  );
});

test('a delimiter does not end it', async () => {
  const data = Buffer.concat([pktLine('version 2'), Buffer.from('0001'), pktLine('a'), FLUSH, Buffer.from('rest')]);
  expect(await read(inPieces(data, []))).toEqual({ text: 'rest', before: '' });
});

test.each([
  ['', 'ends before'],
  ['00', 'ends before'],
  ['0008ab', 'ends before'],
  ['Welcome to this machine', 'does not begin as Git does'],
  ['+004', 'does not begin as Git does'],
])('%j is no advertisement', async (text, words) => {
  await expect(read(inPieces(Buffer.from(text), []))).rejects.toThrow(words);
});
