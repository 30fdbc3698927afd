import { parsePublicKeyList } from '../../../git/signing/public-key-list.ts';
import { TRUSTED_KEYS_ANNOTATION } from '../../../resource/kinds/porch/repository.ts';
import type { TrustedKey } from '../ledger/trust-ledger.ts';

/** The keys that a repository trusts. */
export interface TrustedKeys {
  /** By fingerprint; including revoked keys, which count for earlier statements. */
  readonly keys: ReadonlyMap<string, TrustedKey>;
  /** Problems of single lines of the annotation, with their numbers; the other lines count. */
  readonly problems: readonly string[];
}

/** A key that only the annotation names was never added to the ledger. */
const NEVER_ADDED = '1970-01-01T00:00:00Z';

/**
 * Returns the keys that a registration trusts: those of the ledger, that is the server's own, retired ones included, and those that
 * operators added; or, where its annotation `sluice.dev/trusted-keys` lists keys, exactly these. A key that is revoked in the ledger
 * is revoked everywhere.
 */
export function trustedKeysOf(
  repositoryAnnotations: Readonly<Record<string, string>> | undefined,
  ledgerKeys: readonly TrustedKey[],
): TrustedKeys {
  const known = new Map(ledgerKeys.map((key) => [key.fingerprint, key]));
  const text =
    repositoryAnnotations !== undefined && Object.hasOwn(repositoryAnnotations, TRUSTED_KEYS_ANNOTATION)
      ? repositoryAnnotations[TRUSTED_KEYS_ANNOTATION]
      : undefined;
  if (text === undefined) return { keys: known, problems: [] };
  const { keys: listed, problems } = parsePublicKeyList(text);
  const keys = new Map<string, TrustedKey>();
  for (const { fingerprint, line, comment } of listed) {
    const added: TrustedKey = { fingerprint, publicKey: line, comment, origin: 'added', addedAt: NEVER_ADDED };
    keys.set(fingerprint, known.get(fingerprint) ?? added);
  }
  return { keys, problems };
}

/** True if statements that are signed with a key now count. */
export function trusts(keys: ReadonlyMap<string, TrustedKey>, fingerprint: string): boolean {
  const key = keys.get(fingerprint);
  return key !== undefined && key.revocation === undefined;
}
