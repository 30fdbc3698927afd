import { SluiceError } from '../../foundation/sluice-error.ts';
import type { KeySource } from '../../package/trust/keys/own-key.ts';
import type { TrustedKey, TrustLedger } from '../../package/trust/ledger/trust-ledger.ts';
import type { Repository } from '../../resource/kinds/porch/repository.ts';
import type { Stored } from '../../resource/object/object.ts';

/** The keys of a data folder, beside a running `up` or without one, or of an installation in a cluster. */
export interface KeyRing {
  readonly ledger: TrustLedger;
  /** The source of the own key. */
  readonly source: KeySource;
  readonly repositories: readonly Stored<Repository>[];
  /**
   * Returns the current signing key, revoked or not; creates one if there is none in a data folder. Throws the SluiceError if it cannot be
   * read.
   */
  own(): TrustedKey;
  /** Puts a new key in the place of the own one. Throws Unsupported where the operator provides it. */
  rotate(): Promise<TrustedKey>;
}

/** A key of the ledger. Throws NotFound with what to do. */
export function keyOf(ledger: TrustLedger, fingerprint: string): TrustedKey {
  const found = ledger.keys().find((key) => key.fingerprint === fingerprint);
  if (found !== undefined) return found;
  throw new SluiceError('NotFound', `no key ${JSON.stringify(fingerprint)} is known; "sluice key show" lists the keys`);
}

/** The refusal to replace a key that the operator provides. */
export function providedKey({ name }: KeySource): SluiceError {
  return new SluiceError(
    'Unsupported',
    `the signing key is provided in ${name}: put another key there and run "sluice key show" with the same option, after which a running server uses it`,
  );
}
