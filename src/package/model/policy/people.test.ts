import { describe, expect, test } from 'vitest';
import { generateSshKey } from '../../../git/signing/generate-ssh-key.ts';
import { statementSigner } from '../../trust/statement/statement-signer.ts';
import { peopleOf, peopleOfBoth } from './people.ts';

/** Counts comparisons of keys, which show the cost of a list without a clock. */
function countedComparisons(run: () => void): number {
  const { equals } = Buffer.prototype;
  let comparisons = 0;
  Buffer.prototype.equals = function (other: Uint8Array) {
    comparisons += 1;
    return equals.call(this, other);
  };
  try {
    run();
  } finally {
    Buffer.prototype.equals = equals;
  }
  return comparisons;
}

/** Different Ed25519 public keys: any 32 bytes are one. */
function list(count: number, options = ''): string {
  const [, blob = ''] = statementSigner(generateSshKey('x')).publicKey.split(' ');
  const bytes = Buffer.from(blob, 'base64');
  return Array.from({ length: count }, (_, index) => {
    bytes.writeUInt32BE(index, bytes.length - 4);
    return `user-${index} ${options}ssh-ed25519 ${bytes.toString('base64')}`;
  }).join('\n');
}

describe('a list of people', () => {
  test('is read without comparing each key with each other one', () => {
    const text = list(500);
    const comparisons = countedComparisons(() => expect(peopleOf(text).signers).toHaveLength(500));
    expect(comparisons).toBeLessThanOrEqual(500);
  });

  test('of more lines than the limit identifies no user, and the problem names both numbers', () => {
    const people = peopleOf('\n'.repeat(10_000));
    expect(people.signers).toEqual([]);
    expect(people.problems).toEqual([
      'it has 10001 lines, of which none counts: 10000 are allowed; remove keys that are not used',
    ]);
    expect(peopleOf('\n'.repeat(9999)).problems).toEqual([]);
  });

  test('has in common with another one the equal lines, found without comparing each key with each other one', () => {
    const [own, other] = [peopleOf(list(500)), peopleOf(`# a comment\n${list(300)}`)];
    const comparisons = countedComparisons(() => {
      const names = peopleOfBoth(own, own).signers.map(({ name }) => name);
      expect(names).toEqual(own.signers.map(({ name }) => name));
      expect(peopleOfBoth(own, other).signers).toEqual([]);
    });
    expect(comparisons).toBeLessThanOrEqual(1000);
  });

  test('has no line in common that differs in one field', () => {
    const key = list(1).slice('user-0 '.length);
    const own = peopleOf(`anna ${key}`);
    for (const line of [`boris ${key}`, `anna namespaces="git" ${key}`, `anna valid-before="20300101Z" ${key}`])
      expect(peopleOfBoth(own, peopleOf(line)).signers).toEqual([]);
    expect(peopleOfBoth(own, peopleOf(`# moved\nanna ${key}`)).signers).toEqual(own.signers);
  });
});
