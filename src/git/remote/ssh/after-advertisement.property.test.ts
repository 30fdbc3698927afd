import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { pktLine } from '../protocol/pkt-line.ts';
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

/** What comes through, and what of it had come before the service began. */
async function read(
  pieces: AsyncIterable<Buffer>,
  keep = true,
): Promise<{ text: string; before: string | undefined; kept: string }> {
  let text = '';
  let before: string | undefined;
  let kept = '';
  const begin = (advertisement: Buffer) => {
    before = text;
    kept = advertisement.toString('latin1');
  };
  for await (const piece of afterAdvertisement(pieces, keep, begin)) text += Buffer.from(piece).toString('latin1');
  return { text, before, kept };
}

test('for every split of the stream, data after the first flush is passed on, and data before it is kept if requested', async () => {
  const lines = fc.array(fc.string({ minLength: 1, maxLength: 20 }), { maxLength: 5 });
  const cuts = fc.array(fc.nat(200), { maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(lines, fc.string(), cuts, fc.boolean(), async (advertised, rest, at, keep) => {
      const answer = Buffer.from(rest).toString('latin1');
      const advertisement = Buffer.concat([...advertised.map((line) => pktLine(line)), FLUSH]);
      const data = Buffer.concat([advertisement, Buffer.from(rest)]);
      const kept = keep ? advertisement.toString('latin1') : '';
      expect(await read(inPieces(data, at), keep)).toEqual({ text: answer, before: '', kept });
    }),
    { numRuns: runs(100) },
  );
});

test('a delimiter does not end it', async () => {
  const data = Buffer.concat([pktLine('version 2'), Buffer.from('0001'), pktLine('a'), FLUSH, Buffer.from('rest')]);
  expect(await read(inPieces(data, []), false)).toEqual({ text: 'rest', before: '', kept: '' });
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
