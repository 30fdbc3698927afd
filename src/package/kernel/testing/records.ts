import type { Oid } from '../../../git/git-repository.ts';
import type { RecordStatement, RevisionRecord } from '../../model/record/record.ts';
import type { Distrust } from '../../trust/distrust.ts';
import { MemoryTrustLedger } from '../../trust/ledger/memory-trust-ledger.ts';
import { DELETED } from '../../trust/ledger/trust-ledger.ts';
import type { RepositoryTrust, Signer, StatementFact } from '../../trust/repository-trust.ts';
import { STATEMENT_VERSION, type StatementHead, scopeOf } from '../../trust/statement/statement.ts';
import { fakeKey, fakeTrust } from '../../trust/testing/fake-signatures.ts';
import { PATH, REPOSITORY } from './package-data.ts';

/** Keys of the server, one after the other; the one before is revoked when the next one is used. */
export const OWN_KEYS = ['own-1', 'own-2', 'own-3'] as const;

/** A commit on a record ref. */
export interface RecordCommit {
  readonly workspace: string;
  readonly parent: Oid | undefined;
  readonly record: RevisionRecord;
  /** Undefined without a statement. */
  readonly fact: StatementFact | undefined;
}

let statements = 0;

/** Creates a statement. Its digest is a number: the rules do not depend on how digests are calculated, which would be slow. */
export function signedBy<By extends Signer>(head: StatementHead, signer: By) {
  statements += 1;
  return { head, digest: `digest ${statements}`, signer };
}

export function scope(workspace: string) {
  return { package: PATH, workspace };
}

/** The records of a repository, and what the server trusts: the ledger, its keys, and how far each chain of statements has come. */
export class Records {
  readonly commits = new Map<Oid, RecordCommit>();
  #ledger = new MemoryTrustLedger();
  #isFirstLook = false;
  #key = 0;
  trust: RepositoryTrust;

  readonly #clock: () => number;

  /** `clock` in milliseconds since the epoch. */
  constructor(clock: () => number) {
    this.#clock = clock;
    this.#ledger.addKey(fakeKey(this.key));
    this.trust = fakeTrust(this.#ledger, REPOSITORY, { firstSequence: this.#clock });
  }

  /** The signing key of the server. */
  get key(): string {
    return OWN_KEYS[this.#key] ?? '';
  }

  /** Keys that an attacker may know: a key is unknown before it was revoked. */
  get revokedKeys(): readonly string[] {
    return OWN_KEYS.slice(0, this.#key);
  }

  /** Uses the next key; the previous one no longer counts. False if there is none left. */
  rotate(): boolean {
    if (this.#key + 1 >= OWN_KEYS.length) return false;
    const before = this.key;
    this.#key += 1;
    this.#ledger.addKey(fakeKey(this.key));
    this.#ledger.revokeKey(before, '2026-01-01T00:00:00Z');
    return true;
  }

  /** Deletes the ledger, except for the key of the server. */
  lose(): void {
    this.#ledger = new MemoryTrustLedger();
    this.#ledger.addKey(fakeKey(this.key));
    this.trust = fakeTrust(this.#ledger, REPOSITORY, { firstSequence: this.#clock });
    this.#isFirstLook = true;
  }

  /** Observes the current records, by workspace, and the head of the main branch. */
  look(found: ReadonlyMap<string, Oid>, mainHead: Oid | undefined): void {
    for (const [workspace, oid] of found) {
      const fact = this.commits.get(oid)?.fact;
      const mark = fact && this.trust.markOfFound(fact, scope(workspace), this.#isFirstLook);
      if (mark !== undefined) this.trust.raise([mark], false);
    }
    this.#isFirstLook = false;
    const known = this.trust.mainHead;
    if (mainHead !== undefined && known !== mainHead) {
      this.#ledger.putRepository({ id: REPOSITORY, address: 'r', mainHeads: { main: mainHead } });
    }
  }

  /** The record at a place as far as it counts. */
  read(
    workspace: string,
    oid: Oid | undefined,
  ): { record?: RevisionRecord; fact?: StatementFact; distrust?: Distrust } {
    if (oid === undefined) {
      const mark = this.trust.mark(scope(workspace));
      const isGone = mark !== undefined && mark.digest !== DELETED;
      return isGone ? { distrust: { reason: 'RolledBack', message: 'its record was removed' } } : {};
    }
    const commit = this.commits.get(oid);
    const fact = commit?.fact;
    const distrust = this.trust.distrustOfRecord(fact, scope(workspace));
    if (distrust !== undefined || commit === undefined || fact === undefined) return distrust ? { distrust } : {};
    if (this.trust.isProven(scope(workspace), fact)) return { record: commit.record, fact };
    const { approvals: _approvals, settled: _settled, ...rest } = commit.record;
    return { record: { ...rest, verdicts: [] }, fact };
  }

  /** The server writes a record on top of another one. `current` is the statement that counts now. */
  write(workspace: string, parent: Oid | undefined, current: StatementFact | undefined, record: RevisionRecord): Oid {
    const statement: RecordStatement = {
      ...{ statement: STATEMENT_VERSION, kind: 'record', repository: REPOSITORY, ...scope(workspace) },
      ...this.trust.next(scope(workspace), current),
      record,
    };
    const fact = signedBy(statement, this.key);
    this.raise(fact);
    return this.add({ workspace, parent, record, fact });
  }

  raise({ head, digest }: StatementFact): void {
    this.trust.raise([{ scope: scopeOf(head), sequence: head.sequence, digest, proven: true }], true);
  }

  /** A draft was deleted: its records never count again. */
  end(workspace: string, current: StatementFact | undefined): void {
    const { sequence } = this.trust.next(scope(workspace), current);
    const entry = { scope: { ...scope(workspace), repository: REPOSITORY }, sequence, digest: DELETED, proven: true };
    this.trust.raise([entry], true);
  }

  /** Any commit that a push puts there. */
  add(commit: RecordCommit): Oid {
    const oid = `record${this.commits.size + 1}`;
    this.commits.set(oid, commit);
    return oid;
  }
}
