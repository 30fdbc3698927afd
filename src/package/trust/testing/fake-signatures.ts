import type { TrustedKey, TrustLedger } from '../ledger/trust-ledger.ts';
import { RepositoryTrust } from '../repository-trust.ts';
import {
  payloadOf,
  type SignedPayload,
  type SignedStatement,
  type StatementHead,
  statementDigest,
} from '../statement/statement.ts';

/*
 * A signature scheme for tests that need many signatures, or wrong ones: a signature contains its key and the digest of the
 * payload. Anyone could create one; tests of attacks sign with other keys, as an attacker must.
 */

export function fakeSignature(key: string, payload: string): string {
  return `${key} ${statementDigest(payload)}`;
}

/** The key that made a signature; undefined if it is not valid for the payload. */
export function fakeSigner(payload: string, signature: string): string | undefined {
  const [key = '', digest] = signature.split(' ');
  return digest === statementDigest(payload) ? key : undefined;
}

export function fakeSigned<Statement extends StatementHead>(
  statement: Statement,
  key: string,
): SignedStatement<Statement> {
  // As a reader would parse it.
  const parsed = JSON.parse(payloadOf(statement)) as Statement;
  return { statement: parsed, signature: fakeSignature(key, payloadOf(parsed)) };
}

/** A statement with its signature as it is written into a message. */
export function asWritten({ statement, signature }: SignedStatement): SignedPayload {
  return { payload: payloadOf(statement), signature };
}

export function fakeKey(
  fingerprint: string,
  origin: TrustedKey['origin'] = 'own',
): Pick<TrustedKey, 'fingerprint' | 'publicKey' | 'comment' | 'origin' | 'addedAt'> {
  return {
    fingerprint,
    publicKey: `ssh-fake ${fingerprint}`,
    comment: '',
    origin,
    addedAt: '2026-01-01T00:00:00Z',
  };
}

/** A repository that trusts every key of the ledger and signs with `key`. */
export function fakeTrust(
  ledger: TrustLedger,
  repository: string,
  {
    key = 'own',
    branch = 'main',
    firstSequence = () => 1,
    ...substitute
  }: {
    key?: string;
    branch?: string;
    firstSequence?: () => number;
    address?: string;
    writeId?: () => Promise<string>;
  } = {},
): RepositoryTrust {
  return new RepositoryTrust({
    ...{ repository, branch, ledger, firstSequence, ...substitute },
    signer: () => ({ ...fakeKey(key), sign: async (payload) => fakeSignature(key, payload) }),
    verify: async (payload, signature) => fakeSigner(payload, signature),
    trustedKeys: () => new Map(ledger.keys().map((trusted) => [trusted.fingerprint, trusted])),
  });
}
