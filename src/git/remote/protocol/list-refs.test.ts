import { expect, test } from 'vitest';
import { readRefs } from './list-refs.ts';
import { FLUSH, pktLine } from './pkt-line.ts';
import { MAX_REF_LIST_BYTES, MAX_REMOTE_REFS } from './ref-list-limit.ts';

const OID = 'a'.repeat(40);
const URL = 'https://git.example.com/a.git';

function lines(count: number, prefix = 'refs/tags/t'): Buffer {
  const size = prefix.length + 7;
  return Buffer.concat(
    Array.from({ length: count }, (_, index) => pktLine(`${OID} ${prefix}${String(index).padStart(7, '0')}\n`)),
    count * (4 + 41 + size + 1),
  );
}

async function* of(...pieces: Buffer[]): AsyncGenerator<Buffer> {
  yield* pieces;
}

test('other work of the process continues while a long list is read, though it arrived in one piece', async () => {
  const list = Buffer.concat([lines(90_000), FLUSH]);
  let turns = 0;
  let ended = false;
  const count = () => {
    turns += 1;
    if (!ended) setImmediate(count);
  };
  setImmediate(count);
  const refs = await readRefs(of(list), URL);
  ended = true;
  expect(refs).toHaveLength(90_000);
  expect(refs.at(-1)).toEqual({ name: 'refs/tags/t0089999', oid: OID });
  expect(turns).toBeGreaterThan(2);
});

test('a list with too many refs is refused with the next step, and the rest is not read', async () => {
  let pieces = 0;
  async function* endless(): AsyncGenerator<Buffer> {
    const piece = lines(20_000);
    for (; pieces < 1_000; pieces += 1) yield piece;
  }
  await expect(readRefs(endless(), URL)).rejects.toMatchObject({
    code: 'LimitExceeded',
    message: `cannot read ${URL}: it lists more than 300000 refs, or more than 64 MiB of them; delete branches and tags that are not needed, or split the repository`,
  });
  expect(pieces).toBe(MAX_REMOTE_REFS / 20_000);
});

test('a list with too many bytes is refused, however few refs it has', async () => {
  let size = 0;
  async function* endless(): AsyncGenerator<Buffer> {
    const piece = pktLine(`${OID} refs/tags/${'t'.repeat(60_000)}\n`);
    for (; size < 4 * MAX_REF_LIST_BYTES; size += piece.length) yield piece;
  }
  await expect(readRefs(endless(), URL)).rejects.toMatchObject({ code: 'LimitExceeded' });
  expect(size).toBeLessThan(MAX_REF_LIST_BYTES + 100_000);
});
