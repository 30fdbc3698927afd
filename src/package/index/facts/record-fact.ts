import type { ReadRecord, RecordStatement, RevisionRecord } from '../../model/record/record.ts';
import type { Signer, StatementFact } from '../../trust/repository-trust.ts';
import type { SignedStatement } from '../../trust/statement/statement.ts';

/** A record as it was read from a commit. */
export class RecordFact {
  readonly record: RevisionRecord;
  readonly signed: SignedStatement<RecordStatement> | undefined;
  /** Of the statement; undefined for a record without one. Made when the record is parsed, since that takes long for a large one. */
  readonly digest: string | undefined;
  /** The signer, which never changes; undefined until the signature was checked. */
  signer: Signer;
  /** True for a record that this process signed, also before its write is committed: it will be the last one. */
  isOwn = false;

  constructor({ record, signed, digest }: ReadRecord, signer?: Signer) {
    this.record = record;
    this.signed = signed;
    this.digest = digest;
    this.signer = signer;
  }

  /** Undefined for a record without a statement. */
  get statement(): StatementFact | undefined {
    if (this.signed === undefined || this.digest === undefined) return undefined;
    return { head: this.signed.statement, digest: this.digest, signer: this.signer };
  }
}
