import type { AttributedPushes } from './ledger/attributed-pushes.ts';
import type { TrustedKey, TrustLedger } from './ledger/trust-ledger.ts';
import type { StatementSigner, VerifySignature } from './statement/statement-signature.ts';

export interface RepositoryTrustOptions {
  /** The id of the repository, or its substitute as long as none could be written. */
  readonly repository: string;
  /** Canonical address; without it, no id of another process is followed. */
  readonly address?: string | undefined;
  /** The main branch, of which the repository may have several in several registrations. */
  readonly branch: string;
  /** Writes the id where there is none yet, and returns it; throws why it cannot be written. */
  readonly writeId?: (() => Promise<string>) | undefined;
  /** Enters in the ledger a later id that Git has, if it counts. Default: none is looked for. */
  readonly readId?: (() => Promise<void>) | undefined;
  /** The key that this server signs with now. Called for each statement, so that a rotated key is used at once. */
  readonly signer: () => StatementSigner;
  readonly verify: VerifySignature;
  readonly ledger: TrustLedger;
  /** Push reports of Git hosts; undefined if they are not stored. */
  readonly pushes?: AttributedPushes | undefined;
  /**
   * The lowest sequence of the next statement on a revision that is not in the ledger, by default 1. With milliseconds since the
   * epoch, statements of a lost ledger are below later ones.
   */
  readonly firstSequence?: () => number;
  /** The keys that this repository trusts, by fingerprint; revoked ones included. Called when `ledger.keysVersion` changed. */
  readonly trustedKeys: () => ReadonlyMap<string, TrustedKey>;
  /** Problems of the keys, such as that the own one is not among them; one sentence each. Default: none. */
  readonly problems?: (() => readonly string[]) | undefined;
}
