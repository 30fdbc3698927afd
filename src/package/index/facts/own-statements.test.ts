import { expect, test } from 'vitest';
import type { StatementHead } from '../../trust/statement/statement.ts';
import { OwnStatements } from './own-statements.ts';

const HEAD: StatementHead = {
  ...{ statement: 'sluice.dev/v1', kind: 'record', repository: 'id', package: 'shop', workspace: 'v1' },
  ...{ sequence: 1, previous: null },
};

function note(own: OwnStatements, commit: string, length: number): void {
  const payload = JSON.stringify({ ...HEAD, record: { note: 'x'.repeat(length) } });
  own.noteRecord(commit, { payload, signature: 'signature' }, { head: HEAD, digest: commit, signer: 'own' });
}

test('records of writes that never reach the index make way by their size', () => {
  const own = new OwnStatements();
  for (let position = 0; position < 40; position += 1) note(own, `${position}`, 256 * 1024);
  expect(own.recordCount).toBeLessThan(10);
  expect(own.recordAt('0')).toBeUndefined();
  expect(own.recordAt('39')?.digest).toBe('39');
});

test('what the index applied is forgotten, and of other writes the record stays to be checked', () => {
  const own = new OwnStatements();
  note(own, 'written', 1);
  note(own, 'waiting', 1);
  own.endWrites([{ name: 'refs/sluice/records/shop', before: undefined, after: 'written' }]);
  expect([own.recordAt('written'), own.signerOf('written'), own.signerOf('waiting')]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  expect(own.recordAt('waiting')?.signer).toBeUndefined();
  own.forget('waiting');
  expect(own.recordCount).toBe(0);
});
