import type {
  EnteredRepository,
  KnownRepository,
  Mark,
  RaisedScopes,
  StatementScope,
  TrustedKey,
  TrustLedger,
} from '../trust/ledger/trust-ledger.ts';

/** A read-only view of a ledger. */
export class ReadOnlyLedger implements TrustLedger {
  readonly #ledger: Pick<TrustLedger, 'keys' | 'mark' | 'repository'>;

  constructor(known: Pick<TrustLedger, 'keys' | 'mark' | 'repository'>) {
    this.#ledger = known;
  }

  /** Only keys, such as those of an allowed-signers file, and no marks. */
  static ofKeys(keys: readonly TrustedKey[]): ReadOnlyLedger {
    return new ReadOnlyLedger({ keys: () => keys, mark: () => undefined, repository: () => undefined });
  }

  readonly keysVersion = 0;

  readKeysVersion(): number {
    return this.keysVersion;
  }

  keys(): readonly TrustedKey[] {
    return this.#ledger.keys();
  }

  repository(id: string): KnownRepository | undefined {
    return this.#ledger.repository(id);
  }

  repositoryAt(): KnownRepository | undefined {
    return undefined;
  }

  repositories(): readonly KnownRepository[] {
    return [];
  }

  mark(scope: StatementScope): Mark | undefined {
    return this.#ledger.mark(scope);
  }

  statementsUpTo(): readonly string[] {
    return [];
  }

  addKey(): void {
    // Nothing is changed.
  }

  revokeKey(): void {
    // Nothing is changed.
  }

  putRepository(): void {
    // Nothing is changed.
  }

  enterRepository(): EnteredRepository {
    return 'known';
  }

  noteMain(): void {
    // Nothing is changed.
  }

  raise(): void {
    // Nothing is changed.
  }

  /** The underlying ledger may change. */
  raisedSince(): RaisedScopes {
    return { version: 0, scopes: undefined };
  }

  close(): void {
    // The caller closes the underlying ledger.
  }
}
