import { LruCache } from '../../../foundation/lru-cache.ts';
import type { Oid, RefChange } from '../../../git/git-repository.ts';
import type { RecordStatement } from '../../model/record/record.ts';
import type { OwnStatementFact } from '../../trust/repository-trust.ts';
import type { SignedPayload } from '../../trust/statement/statement.ts';
import { RecordFact } from './record-fact.ts';

/** More than writes can wait. */
const MAX_SIGNERS = 16_384;
/** An estimate of what the records of some thousand writes take up. */
const MAX_RECORD_BYTES = 8 * 1024 * 1024;
/** An estimate of what a parsed record takes up, by its text. */
const HEAP_BYTES_PER_CHARACTER = 4;

/**
 * Statements in commits of this process whose writes are under way, so that it need not read, validate and check them. Most are
 * forgotten when the index has applied the write; of writes that failed the oldest make way.
 */
export class OwnStatements {
  readonly #signers = new LruCache<Oid, string>({ maxEntries: MAX_SIGNERS });
  readonly #records = new LruCache<Oid, RecordFact>({ maxSize: MAX_RECORD_BYTES });

  /** Notes the key with which this process signed the statement in a commit. */
  noteSigner(commit: Oid, fingerprint: string): void {
    this.#signers.set(commit, fingerprint);
  }

  /** Notes a record that this process signed and wrote. */
  noteRecord(commit: Oid, { payload, signature }: SignedPayload, { digest, signer }: OwnStatementFact): void {
    this.noteSigner(commit, signer);
    // As a reader parses it, so that nothing of the request becomes part of the index.
    const statement = JSON.parse(payload) as RecordStatement;
    const fact = new RecordFact({ record: statement.record, signed: { statement, signature }, digest });
    this.#records.set(commit, fact, payload.length * HEAP_BYTES_PER_CHARACTER);
  }

  /** The key of the statement in a commit, if this process signed it. */
  signerOf(commit: Oid): string | undefined {
    return this.#signers.peek(commit);
  }

  recordAt(commit: Oid): RecordFact | undefined {
    return this.#records.peek(commit);
  }

  /** Number of records. */
  get recordCount(): number {
    return this.#records.count;
  }

  /** Forgets a commit that will not be written. */
  forget(commit: Oid): void {
    this.#signers.delete(commit);
    this.#records.delete(commit);
  }

  /**
   * To be called when the index has applied changes. Of writes that are not among them the records stay, and their signatures are checked
   * as those of others.
   */
  endWrites(changes: readonly RefChange[]): void {
    this.#signers.clear();
    for (const { after } of changes) if (after !== undefined) this.#records.delete(after);
  }
}
