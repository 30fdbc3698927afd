import type { TrustedKey } from './ledger/trust-ledger.ts';

/**
 * Reasons why a statement does not count:
 * - `Unsigned`: there is no statement, or one of a version that this Sluice does not know;
 * - `Unverified`: its signature has not been checked yet;
 * - `BadSignature`: the signature is not valid for it;
 * - `UntrustedKey`: made with a key that the repository does not trust;
 * - `RevokedKey`: made with a key after the trust in it ended;
 * - `OtherRepository`, `OtherRevision`: a statement about something else, in the wrong place;
 * - `RolledBack`: an older statement than the last one that was seen.
 */
export type TrustFlaw =
  | 'Unsigned'
  | 'Unverified'
  | 'BadSignature'
  | 'UntrustedKey'
  | 'RevokedKey'
  | 'OtherRepository'
  | 'OtherRevision'
  | 'RolledBack';

export interface Distrust {
  readonly reason: TrustFlaw;
  /** One human-readable sentence. */
  readonly message: string;
  /** Of `RolledBack`: the sequence of the later mark in the ledger. */
  readonly behind?: number;
}

/** The flaw of a statement whose key was revoked. */
export function revoked(key: TrustedKey): Distrust {
  return {
    reason: 'RevokedKey',
    message: `its statement is signed with ${key.fingerprint}, which was revoked at ${key.revocation?.at}`,
  };
}
