import type { Oid } from '../../../git/git-repository.ts';
import { parseRef, type RepositoryLayout, recordRef } from '../../model/identity/layout.ts';
import { ADOPTION_SCOPE } from '../../trust/adoption.ts';
import type { NewMark } from '../../trust/ledger/trust-ledger.ts';
import type { RepositoryTrust } from '../../trust/repository-trust.ts';
import type { StatementHead } from '../../trust/statement/statement.ts';
import type { FactCache } from '../facts/fact-cache.ts';
import type { RecordFact } from '../facts/record-fact.ts';
import type { IndexDelta } from '../state/index-delta.ts';
import type { Unchecked } from '../trust/signature-checks.ts';

/** Follows records with the trust ledger: which one of a revision is the last, and whether the ledger is older than the repository. */
export class RecordMarks {
  readonly #layout: RepositoryLayout;
  readonly #trust: RepositoryTrust;
  readonly #records: FactCache['records'];
  /** True if the repository was unknown: its records may be older than the last ones. */
  #isFirstLook: boolean;
  readonly #beganWithFirstLook: boolean;
  /** A statement showed it since this process started. */
  #isLedgerOld = false;

  constructor(layout: RepositoryLayout, trust: RepositoryTrust, records: FactCache['records'], isFirstLook: boolean) {
    this.#layout = layout;
    this.#trust = trust;
    this.#records = records;
    this.#isFirstLook = isFirstLook;
    this.#beganWithFirstLook = isFirstLook;
  }

  get isFirstLook(): boolean {
    return this.#isFirstLook;
  }

  /** The marks of the first sync were raised. */
  endFirstLook(): void {
    this.#isFirstLook = false;
  }

  get isLedgerOld(): boolean {
    return this.#isLedgerOld;
  }

  /**
   * Returns whether a record shows that the ledger is older than the repository; noted so that no verdict counts until it is
   * affirmed.
   */
  noteOldLedger({ refs }: IndexDelta): boolean {
    if (this.#isFirstLook) return false;
    return this.#note(
      refs.some(({ name, after }) => {
        const meaning = after === undefined ? undefined : parseRef(this.#layout, name);
        if (after === undefined || meaning?.kind !== 'record') return false;
        const scope = { package: meaning.path, workspace: meaning.workspace };
        return this.#isBeyondLedger(this.#records.get(after), scope);
      }),
    );
  }

  /** The same for records that were checked later. Those of a first sync are all newer than the ledger. */
  noteOldLedgerBy(checked: readonly Unchecked[], refs: ReadonlyMap<string, Oid>): boolean {
    if (this.#beganWithFirstLook) return false;
    return this.#note(
      checked.some((item) => {
        const head = 'fact' in item ? item.fact.statement?.head : undefined;
        if (head === undefined || !('fact' in item)) return false;
        const isThere = refs.get(recordRef(this.#layout, head.package, head.workspace)) === item.oid;
        return isThere && this.#isBeyondLedger(item.fact, head);
      }),
    );
  }

  #isBeyondLedger(fact: RecordFact | null | undefined, scope: Pick<StatementHead, 'package' | 'workspace'>): boolean {
    const statement = fact?.statement;
    if (statement === undefined || this.#trust.distrustOfRecord(statement, scope) !== undefined) return false;
    return this.#trust.isBeyondLedger(statement, fact?.isOwn);
  }

  #note(isBeyond: boolean): boolean {
    if (isBeyond) {
      this.#trust.noteFirstLook();
      this.#isLedgerOld = true;
    }
    return isBeyond;
  }

  /** Records that are new and count raise the marks of the revisions at whose place they are. */
  raise({ refs, adoption }: IndexDelta): void {
    const marks: NewMark[] = [];
    const adopted = adoption?.present?.fact;
    const ofAdoption = adopted && this.#trust.markOfFound(adopted, ADOPTION_SCOPE, this.#isFirstLook);
    if (ofAdoption !== undefined) marks.push(ofAdoption);
    for (const { name, after } of refs) {
      const meaning = after === undefined ? undefined : parseRef(this.#layout, name);
      if (after === undefined || meaning?.kind !== 'record') continue;
      const statement = this.#records.get(after)?.statement;
      const scope = { package: meaning.path, workspace: meaning.workspace };
      const mark = statement && this.#trust.markOfFound(statement, scope, this.#isFirstLook);
      if (mark !== undefined) marks.push(mark);
    }
    this.#trust.raise(marks, false);
  }

  /** The same for records that were checked later, and still are where they were. */
  raiseChecked(checked: readonly Unchecked[], refs: ReadonlyMap<string, Oid>): void {
    const marks: NewMark[] = [];
    for (const item of checked) {
      const statement = 'fact' in item ? item.fact.statement : undefined;
      if (statement === undefined) continue;
      const { package: path, workspace } = statement.head;
      if (refs.get(recordRef(this.#layout, path, workspace)) !== item.oid) continue;
      const mark = this.#trust.markOfFound(statement, { package: path, workspace }, false);
      if (mark !== undefined) marks.push(mark);
    }
    this.#trust.raise(marks, false);
  }
}
