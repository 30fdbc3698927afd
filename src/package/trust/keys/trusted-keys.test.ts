import { expect, test } from 'vitest';
import { isSluiceError } from '../../../foundation/sluice-error.ts';
import { generateSshKey } from '../../../git/signing/generate-ssh-key.ts';
import { repositoryKind, TRUSTED_KEYS_ANNOTATION } from '../../../resource/kinds/porch/repository.ts';
import type { InvalidObjectDetails } from '../../../resource/object/invalid-object.ts';
import type { TrustedKey } from '../ledger/trust-ledger.ts';
import { statementSigner } from '../statement/statement-signer.ts';
import { trustedKeysOf, trusts } from './trusted-keys.ts';

const AT = '2026-01-01T00:00:00Z';
const newKey = (origin: TrustedKey['origin'], comment: string): TrustedKey => {
  const { fingerprint, publicKey } = statementSigner(generateSshKey(comment));
  return { fingerprint, publicKey, comment, origin, addedAt: AT };
};
const own = newKey('own', 'own');
const retired = newKey('own', 'retired');
const added = newKey('added', 'added');
const other = newKey('added', 'other');
const revokedKey: TrustedKey = { ...newKey('added', 'revoked'), revocation: { at: AT, order: 3, heads: {} } };
const ledger = [retired, own, added, revokedKey];
const listing = (...lines: string[]) => ({ [TRUSTED_KEYS_ANNOTATION]: lines.join('\n') });

test('without the annotation all keys of the ledger count, revoked ones up to their end', () => {
  for (const annotations of [undefined, {}, { 'sluice.dev/gates': 'warn' }]) {
    const { keys, problems } = trustedKeysOf(annotations, ledger);
    expect([...keys.values()]).toEqual(ledger);
    expect([trusts(keys, own.fingerprint), problems]).toEqual([true, []]);
  }
});

test('with the annotation exactly the listed keys count', () => {
  const annotations = listing('# servers', `${other.publicKey} of another server`, '', `  ${added.publicKey}\r`);
  const { keys, problems } = trustedKeysOf(annotations, ledger);
  expect([...keys.keys()]).toEqual([other.fingerprint, added.fingerprint]);
  expect(keys.get(added.fingerprint)).toBe(added);
  expect(keys.get(other.fingerprint)).toMatchObject({ publicKey: other.publicKey, comment: 'of another server' });
  expect([trusts(keys, own.fingerprint), problems]).toEqual([false, []]);
  expect(trusts(trustedKeysOf(listing(own.publicKey), ledger).keys, own.fingerprint)).toBe(true);
});

test('a revoked key stays revoked where it is listed, the own one too', () => {
  const { keys } = trustedKeysOf(listing(revokedKey.publicKey), ledger);
  expect(keys.get(revokedKey.fingerprint)).toBe(revokedKey);
  expect(trusts(trustedKeysOf(undefined, ledger).keys, revokedKey.fingerprint)).toBe(false);
  expect(trusts(trustedKeysOf(listing(revokedKey.publicKey), ledger).keys, revokedKey.fingerprint)).toBe(false);
  expect(trusts(trustedKeysOf(undefined, ledger).keys, 'SHA256:unknown')).toBe(false);
});

test('a line that is no key is reported with its number, and the others count', () => {
  const annotations = listing('# comment', 'nonsense', own.publicKey, 'ssh-rsa AAAA');
  const { keys, problems } = trustedKeysOf(annotations, ledger);
  expect([...keys.keys()]).toEqual([own.fingerprint]);
  expect(problems).toEqual([
    expect.stringMatching(/^line 2: the SSH key cannot be used: /),
    expect.stringMatching(/^line 4: the SSH key cannot be used: /),
  ]);
  expect(trustedKeysOf(listing(''), ledger)).toMatchObject({
    problems: ['it lists no key'],
  });
  const many = listing(...Array.from({ length: 150 }, () => own.publicKey));
  expect(trustedKeysOf(many, ledger).problems).toEqual(['line 101: there are more than 100 keys']);
});

test('a Repository with such an annotation is refused, with the field', () => {
  const repository = (annotations: Record<string, string>) =>
    repositoryKind.parse({ metadata: { name: 'r', annotations }, spec: { git: { repo: '/srv/r.git' } } });
  expect(repository(listing('# one', own.publicKey)).object.metadata.annotations).toEqual(
    listing('# one', own.publicKey),
  );
  for (const text of ['', '# none', 'nonsense', `${own.publicKey}\nx`]) {
    const error = thrown(() => repository(listing(text)));
    if (!isSluiceError(error, 'InvalidInput')) throw error;
    const { causes } = error.details as InvalidObjectDetails;
    expect(causes.map(({ field }) => field)).toEqual(['metadata.annotations[sluice.dev/trusted-keys]']);
    expect(causes[0]?.message).toContain('public keys');
  }
});

function thrown(action: () => void): unknown {
  try {
    action();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
}
