import { SluiceError } from '../../foundation/sluice-error.ts';
import { isStatementDigest, raisedMark, scopeText } from './marks.ts';
import type { KnownRepository, Mark, NewMark, StatementScope, TrustedKey, TrustLedger } from './trust-ledger.ts';

/** For tests, and for work on repositories without a data folder: nothing outlives the process. */
export class MemoryTrustLedger implements TrustLedger {
  #keysVersion = 0;
  #order = 0;
  readonly #keys = new Map<string, TrustedKey>();
  /** By id; what was put last stands last. */
  readonly #repositories = new Map<string, KnownRepository>();
  readonly #marks = new Map<string, Mark>();

  get keysVersion(): number {
    return this.#keysVersion;
  }

  readKeysVersion(): number {
    return this.#keysVersion;
  }

  keys(): readonly TrustedKey[] {
    return [...this.#keys.values()];
  }

  addKey(key: Pick<TrustedKey, 'fingerprint' | 'publicKey' | 'comment' | 'origin' | 'addedAt'>): void {
    if (this.#keys.has(key.fingerprint)) return;
    const { fingerprint, publicKey, comment, origin, addedAt } = key;
    this.#keys.set(fingerprint, { fingerprint, publicKey, comment, origin, addedAt });
    this.#keysVersion += 1;
  }

  revokeKey(fingerprint: string, at: string): void {
    const key = this.#keys.get(fingerprint);
    if (key === undefined) throw unknownKey(fingerprint);
    if (key.revocation !== undefined) return;
    const heads: Record<string, string> = {};
    for (const { id, mainHead } of this.#repositories.values()) if (mainHead !== undefined) heads[id] = mainHead;
    this.#keys.set(fingerprint, { ...key, revocation: { at, order: this.#order, heads } });
    this.#keysVersion += 1;
  }

  repository(id: string): KnownRepository | undefined {
    return this.#repositories.get(id);
  }

  repositoryAt(address: string): KnownRepository | undefined {
    return this.repositories().findLast((repository) => repository.address === address);
  }

  repositories(): readonly KnownRepository[] {
    return [...this.#repositories.values()];
  }

  putRepository({ id, address, mainHead }: KnownRepository): void {
    this.#repositories.delete(id);
    this.#repositories.set(id, { id, address, mainHead });
  }

  noteMain(id: string, mainHead: string): void {
    const known = this.#repositories.get(id);
    if (known !== undefined) this.#repositories.set(id, { ...known, mainHead });
  }

  mark(scope: StatementScope): Mark | undefined {
    return this.#marks.get(scopeText(scope));
  }

  statementsUpTo(order: number): readonly string[] {
    const known = [...this.#marks.values()].filter((mark) => mark.order <= order && isStatementDigest(mark.digest));
    return known.map(({ digest }) => digest);
  }

  raise(entries: readonly NewMark[]): void {
    for (const entry of entries) {
      const key = scopeText(entry.scope);
      const mark = raisedMark(this.#marks.get(key), entry, this.#order + 1);
      this.#order = Math.max(this.#order, mark.order);
      this.#marks.set(key, mark);
    }
  }

  close(): void {
    // Nothing to write and nothing to release.
  }
}

/** For both ledgers. */
export function unknownKey(fingerprint: string): SluiceError {
  return new SluiceError(
    'NotFound',
    `no key with the fingerprint ${fingerprint} was ever trusted; "sluice key show" lists the keys`,
  );
}
