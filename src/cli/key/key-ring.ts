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
