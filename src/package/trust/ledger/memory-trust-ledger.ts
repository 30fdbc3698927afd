import { SluiceError } from '../../../foundation/sluice-error.ts';
import { sameValue } from '../../../resource/object/same-value.ts';
import { enteredRepository } from './entered-repository.ts';
import { headsOfAll, withHead } from './main-heads.ts';
import { isStatementDigest, raisedMark, scopeOfText, scopePrefix, scopeText } from './marks.ts';
import { RaiseLog } from './raised-scopes.ts';
import type {
  EnteredRepository,
  KnownRepository,
  Mark,
  NewMark,
  RaisedScopes,
  StatementScope,
  TrustedKey,
  TrustLedger,
} from './trust-ledger.ts';

/** For tests, and for work on repositories without a data folder: it is not durable. */
export class MemoryTrustLedger implements TrustLedger {
  #keysVersion = 0;
  #order = 0;
  /** The highest order of a revocation: it covers the marks up to it. */
  #revokedUpTo = -1;
  readonly #keys = new Map<string, TrustedKey>();
  /** By id, in the order of the writes. */
  readonly #repositories = new Map<string, KnownRepository>();
  /** The id that was written last, by address. */
  readonly #idsAt = new Map<string, string>();
  readonly #marks = new Map<string, Mark>();
  readonly #raised = new RaiseLog();
  /** Of these, what other processes have written. */
  readonly #joined = new RaiseLog();

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
    const heads = headsOfAll(this.#repositories.values());
    this.#keys.set(fingerprint, { ...key, revocation: { at, order: this.#order, heads } });
    this.#revokedUpTo = this.#order;
    this.#keysVersion += 1;
  }

  repository(id: string): KnownRepository | undefined {
    return this.#repositories.get(id);
  }

  repositoryAt(address: string): KnownRepository | undefined {
    const id = this.#idsAt.get(address);
    return id === undefined ? undefined : this.#repositories.get(id);
  }

  repositories(): readonly KnownRepository[] {
    return [...this.#repositories.values()];
  }

  putRepository(repository: KnownRepository): void {
    this.#put(repository);
  }

  #put({ id, address, mainHeads }: KnownRepository): void {
    const before = this.#repositories.get(id)?.address;
    this.#repositories.delete(id);
    this.#repositories.set(id, { id, address, mainHeads });
    this.#idsAt.set(address, id);
    if (before === undefined || before === address || this.#idsAt.get(before) !== id) return;
    const last = this.repositories().findLast((repository) => repository.address === before);
    if (last === undefined) this.#idsAt.delete(before);
    else this.#idsAt.set(before, last.id);
  }

  enterRepository(repository: KnownRepository, movedFrom?: string): EnteredRepository {
    const { entered, put } = enteredRepository(this.repository(repository.id), repository, movedFrom);
    if (put !== undefined) this.putRepository(put);
    return entered;
  }

  noteMain(id: string, branch: string, head: string): void {
    const known = this.#repositories.get(id);
    if (known === undefined) return;
    this.#repositories.set(id, { ...known, mainHeads: withHead(known.mainHeads, branch, head) });
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
    this.#raised.add(entries.map(({ scope }) => scope));
  }

  raisedSince(version: number): RaisedScopes {
    return this.#raised.since(version);
  }

  /** As `raisedSince`, of what this process has joined from others. */
  joinedSince(version: number): RaisedScopes {
    return this.#joined.since(version);
  }

  close(): void {
    // There are no resources to write or release.
  }

  /** True if there is a statement on a revision of a repository. Its cost grows with the ledger. */
  protected hasStatementsOn(id: string): boolean {
    const prefix = scopePrefix(id);
    // Other scopes than those of revisions have a slash; see publication-mark.ts.
    for (const [key, { digest }] of this.#marks)
      if (key.startsWith(prefix) && isStatementDigest(digest) && !scopeOfText(key).workspace.includes('/')) return true;
    return false;
  }

  /** Notes that another process has written about a repository what is no mark. */
  protected noteWritten(repository: string): void {
    this.#noteJoined({ repository, package: '', workspace: '' });
  }

  /** Joins a repository that another process has stored. It may arrive late: of an address, those that were entered later stay the last. */
  protected joinRepository(repository: KnownRepository, isLater: (id: string) => boolean): void {
    const later = this.repositories().filter(({ id, address }) => address === repository.address && isLater(id));
    for (const each of [repository, ...later]) this.#put(each);
  }

  /**
   * Adds a key that another process has stored. A key that is revoked by either is revoked, as the other process says.
   */
  protected joinKey(stored: TrustedKey): void {
    const present = this.#keys.get(stored.fingerprint);
    if (present !== undefined && (stored.revocation === undefined || sameValue(present, stored))) return;
    this.#keys.set(stored.fingerprint, stored);
    this.#order = Math.max(this.#order, stored.revocation?.order ?? 0);
    this.#revokedUpTo = Math.max(this.#revokedUpTo, stored.revocation?.order ?? -1);
    this.#keysVersion += 1;
  }

  /**
   * Joins a mark that another process has stored; of two statements at the same place the stored one counts. Returns true if it
   * changes this ledger. With `isLate` it comes after all revocations here, whatever its order is there. Otherwise the stored order stays, so
   * that processes do not write the marks of each other again.
   */
  protected joinMark(scope: StatementScope, stored: Mark, isLate: boolean): boolean {
    const key = scopeText(scope);
    const present = this.#marks.get(key);
    if (present !== undefined && stored.sequence < present.sequence) return false;
    const joined =
      present !== undefined && stored.sequence === present.sequence && stored.digest === present.digest
        ? { ...stored, proven: stored.proven || present.proven, order: this.#sameOrder(stored.order, present.order) }
        : { ...stored, order: isLate ? this.#lateOrder(stored.order) : stored.order };
    this.#order = Math.max(this.#order, joined.order);
    if (sameValue(joined, present)) return false;
    this.#marks.set(key, joined);
    // No revocation distinguishes the two orders.
    const isDistinct = present === undefined || Math.min(joined.order, present.order) <= this.#revokedUpTo;
    if (!isDistinct && sameValue(joined, { ...present, order: joined.order })) return false;
    this.#noteJoined(scope);
    return true;
  }

  #noteJoined(scope: StatementScope): void {
    this.#raised.add([scope]);
    this.#joined.add([scope]);
  }

  #lateOrder(stored: number): number {
    return stored <= this.#revokedUpTo ? Math.max(this.#order, stored) + 1 : stored;
  }

  #sameOrder(stored: number, present: number): number {
    return Math.min(stored, present) <= this.#revokedUpTo ? Math.max(stored, present) : stored;
  }
}

/** For both ledgers. */
export function unknownKey(fingerprint: string): SluiceError {
  return new SluiceError(
    'NotFound',
    `no key with the fingerprint ${fingerprint} was ever trusted; "sluice key show" lists the keys`,
  );
}
