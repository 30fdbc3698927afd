import type { DatabaseSync } from 'node:sqlite';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import { type Clock, systemClock } from '../../../foundation/time/clock.ts';
import { enteredRepository } from '../ledger/entered-repository.ts';
import { withHead } from '../ledger/main-heads.ts';
import { isStatementDigest, raisedMark, scopeText } from '../ledger/marks.ts';
import { unknownKey } from '../ledger/memory-trust-ledger.ts';
import { RaiseLog } from '../ledger/raised-scopes.ts';
import type {
  EnteredRepository,
  KnownRepository,
  Mark,
  NewMark,
  RaisedScopes,
  StatementScope,
  TrustedKey,
  TrustLedger,
} from '../ledger/trust-ledger.ts';
import { LedgerTables } from './ledger-tables.ts';
import { ledgerError, openLedgerDatabase, openLedgerReadOnly } from './open-ledger-database.ts';

export interface SqliteTrustLedgerOptions {
  readonly path: string;
  readonly clock?: Clock;
  /** Called once for each series of failures to write marks that need not be durable; they wait for a write that succeeds. */
  readonly onError?: (error: unknown) => void;
}

/** Milliseconds that non-durable marks wait for others. */
const FLUSH_DELAY_MS = 500;
/** Maximum age in milliseconds of `keysVersion` after another process changed the keys. */
const VERSION_AGE_MS = 50;
/** Marks of one write that are written at once. */
const MAX_AT_ONCE = 256;
/** A write is due at once when so many marks wait. */
const MAX_PENDING = 1000;

/** A raised mark that is not yet in the file. */
interface Pending {
  readonly entry: NewMark;
  /** Position among those that wait, from 1. */
  readonly index: number;
}

/**
 * A ledger in a separate SQLite file, which several processes write at the same time. Each write is one transaction with full sync;
 * reads access the file, so that they include the writes of other processes.
 */
export class SqliteTrustLedger implements TrustLedger {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #onError: (error: unknown) => void;
  readonly #database: DatabaseSync;
  readonly #tables: LedgerTables;
  #closed = false;
  readonly #pending = new Map<string, Pending>();
  /** Main heads that are not yet in the file, by repository and branch. */
  readonly #heads = new Map<string, ReadonlyMap<string, string>>();
  #raised = 0;
  readonly #raiseLog = new RaiseLog();
  /** Changes when another connection writes to the file. */
  #foreignVersion: number;
  #cancelFlush: (() => void) | undefined;
  /** The last attempt to write the pending marks failed. */
  #failed = false;
  #keysVersion: number;
  /** Time of the last read of the version, in running time. */
  #readAt: number;
  #keys: { readonly version: number; readonly list: readonly TrustedKey[] } | undefined;

  private constructor(options: SqliteTrustLedgerOptions, database: DatabaseSync) {
    this.#path = options.path;
    this.#clock = options.clock ?? systemClock;
    this.#onError = options.onError ?? (() => undefined);
    this.#database = database;
    this.#tables = new LedgerTables(database);
    this.#foreignVersion = this.#tables.foreignVersion();
    this.#keysVersion = this.#tables.counter('keysVersion');
    this.#readAt = this.#clock.monotonic();
  }

  /**
   * Opens the file; creates a missing one, readable for its owner only. Throws Corrupt, Unsupported, Busy or
   * Unavailable.
   */
  static open(options: SqliteTrustLedgerOptions): SqliteTrustLedger {
    return new SqliteTrustLedger(options, openLedgerDatabase(options.path));
  }

  /** Opens the file to read it; see `openLedgerReadOnly`. Methods that would change it throw. */
  static openReadOnly(path: string): SqliteTrustLedger {
    return new SqliteTrustLedger({ path }, openLedgerReadOnly(path));
  }

  get keysVersion(): number {
    if (this.#clock.monotonic() - this.#readAt >= VERSION_AGE_MS) this.#readVersion();
    return this.#keysVersion;
  }

  readKeysVersion(): number {
    this.#readVersion();
    return this.#keysVersion;
  }

  keys(): readonly TrustedKey[] {
    return this.#read(() => {
      const version = this.#tables.counter('keysVersion');
      if (this.#keys?.version !== version) this.#keys = { version, list: this.#tables.keys() };
      return this.#keys.list;
    });
  }

  addKey(key: Pick<TrustedKey, 'fingerprint' | 'publicKey' | 'comment' | 'origin' | 'addedAt'>): void {
    this.#write(() => {
      if (this.#tables.addKey(key)) this.#changeKeys();
    });
    this.#readVersion();
  }

  revokeKey(fingerprint: string, at: string): void {
    this.#write(() => {
      if (this.#tables.revokeKey(fingerprint, at)) this.#changeKeys();
      else if (this.#tables.keys().every((key) => key.fingerprint !== fingerprint)) throw unknownKey(fingerprint);
    });
    this.#readVersion();
  }

  repository(id: string): KnownRepository | undefined {
    return this.#read(() => this.#withHead(this.#tables.repository(id)));
  }

  repositoryAt(address: string): KnownRepository | undefined {
    return this.#read(() => this.#withHead(this.#tables.repositoryAt(address)));
  }

  repositories(): readonly KnownRepository[] {
    return this.#read(() => this.#tables.repositories().flatMap((known) => this.#withHead(known) ?? []));
  }

  putRepository(repository: KnownRepository): void {
    this.#write(() => this.#tables.putRepository(repository));
  }

  enterRepository(repository: KnownRepository, movedFrom?: string): EnteredRepository {
    return this.#write(() => {
      const { entered, put } = enteredRepository(this.#tables.repository(repository.id), repository, movedFrom);
      if (put !== undefined) this.#tables.putRepository(put);
      return entered;
    });
  }

  noteMain(id: string, branch: string, head: string): void {
    this.#expectOpen();
    this.#heads.set(id, new Map([...(this.#heads.get(id) ?? []), [branch, head]]));
    // A key that another process revokes next keeps the publications up to this head.
    if (this.#failed) this.#scheduleFlush();
    else this.#flush();
  }

  mark(scope: StatementScope): Mark | undefined {
    return this.#read(() => {
      const stored = this.#tables.mark(scope);
      const pending = this.#pending.get(scopeText(scope));
      if (pending === undefined) return stored;
      // Pending marks come after those of other processes.
      return raisedMark(stored, pending.entry, this.#tables.counter('order') + pending.index);
    });
  }

  statementsUpTo(order: number): readonly string[] {
    return this.#read(() => this.#tables.digestsUpTo(order)).filter(isStatementDigest);
  }

  raise(entries: readonly NewMark[], { durable }: { readonly durable: boolean }): void {
    this.#raiseLog.add(entries.map(({ scope }) => scope));
    if (durable) {
      this.#write(() => this.#store(entries.map((entry, before) => ({ entry, index: before + 1 }))));
      return;
    }
    for (const entry of entries) this.#wait(entry);
    // Other processes see a single write at once: what a command reads next must match what a server has acknowledged.
    const isSmall = entries.length > 0 && entries.length <= MAX_AT_ONCE;
    if ((isSmall || this.#pending.size >= MAX_PENDING) && this.#pending.size > 0 && !this.#failed) this.#flush();
    else if (this.#pending.size > 0) this.#scheduleFlush();
  }

  raisedSince(version: number): RaisedScopes {
    const foreignVersion = this.#read(() => this.#tables.foreignVersion());
    // The marks that another process raised are not looked up: it may have changed any of them.
    if (foreignVersion !== this.#foreignVersion) this.#raiseLog.forget();
    this.#foreignVersion = foreignVersion;
    return this.#raiseLog.since(version);
  }

  close(): void {
    if (this.#closed) return;
    try {
      if (this.#pending.size + this.#heads.size > 0) this.#write(() => undefined);
    } finally {
      this.#cancelFlush?.();
      this.#closed = true;
      this.#database.close();
    }
  }

  #wait(entry: NewMark): void {
    const key = scopeText(entry.scope);
    const before = this.mark(entry.scope);
    if (raisedMark(before, entry, Number.POSITIVE_INFINITY) === before) return;
    // The later one of a scope replaces an earlier one that waits, which it has been compared with, and keeps what was proven.
    this.#raised += 1;
    this.#pending.delete(key);
    this.#pending.set(key, { entry, index: this.#raised });
  }

  #scheduleFlush(): void {
    this.#cancelFlush ??= this.#clock.schedule(FLUSH_DELAY_MS, () => {
      this.#cancelFlush = undefined;
      this.#flush();
    });
  }

  /** Writes pending marks; those that cannot be written stay pending. */
  #flush(): void {
    try {
      this.#write(() => undefined, 'NORMAL');
    } catch (error) {
      if (!this.#failed) this.#onError(error);
      this.#failed = true;
      this.#scheduleFlush();
    }
  }

  #store(raises: Iterable<Pending>): void {
    const first = this.#tables.counter('order');
    let last = first;
    for (const { entry, index } of raises) {
      const before = this.#tables.mark(entry.scope);
      const mark = raisedMark(before, entry, first + index);
      if (mark === before) continue;
      this.#tables.putMark(entry.scope, mark);
      last = Math.max(last, mark.order);
    }
    if (last > first) this.#tables.raiseCounter('order', last);
  }

  #withHead(known: KnownRepository | undefined): KnownRepository | undefined {
    if (known === undefined) return undefined;
    let { mainHeads } = known;
    for (const [branch, head] of this.#heads.get(known.id) ?? []) mainHeads = withHead(mainHeads, branch, head);
    return { ...known, mainHeads };
  }

  #storeHeads(): void {
    for (const [id, heads] of this.#heads) for (const [branch, head] of heads) this.#tables.noteMain(id, branch, head);
  }

  #changeKeys(): void {
    this.#tables.raiseCounter('keysVersion', this.#tables.counter('keysVersion') + 1);
  }

  #readVersion(): void {
    this.#keysVersion = this.#read(() => this.#tables.counter('keysVersion'));
    this.#readAt = this.#clock.monotonic();
  }

  #read<Result>(work: () => Result): Result {
    this.#expectOpen();
    try {
      return work();
    } catch (error) {
      throw ledgerError(error, this.#path);
    }
  }

  /**
   * One durable transaction, with all marks that wait in front of it.
   * With `NORMAL` other processes see it at once, and it outlives this process, but a crash of the machine may lose it; the next `FULL`
   * write brings it to the disk too.
   */
  #write<Result>(work: () => Result, synchronous: 'FULL' | 'NORMAL' = 'FULL'): Result {
    this.#expectOpen();
    let result: Result;
    try {
      if (synchronous === 'NORMAL') this.#database.exec('PRAGMA synchronous = NORMAL');
      this.#database.exec('BEGIN IMMEDIATE');
      this.#store(this.#pending.values());
      this.#storeHeads();
      result = work();
      this.#database.exec('COMMIT');
    } catch (error) {
      // After some errors SQLite has already rolled back.
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
      throw ledgerError(error, this.#path);
    } finally {
      if (synchronous === 'NORMAL') this.#database.exec('PRAGMA synchronous = FULL');
    }
    this.#failed = false;
    this.#pending.clear();
    this.#heads.clear();
    this.#raised = 0;
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    return result;
  }

  #expectOpen(): void {
    if (this.#closed) throw new SluiceError('Unavailable', `the trust ledger ${this.#path} is closed`);
  }
}
