import type { Oid } from '../../../git/git-repository.ts';
import type { OutOfBand } from '../../model/revision/package-revision.ts';
import type { KptfileFact } from './kptfile-fact.ts';
import type { LazyJson } from './lazy-json.ts';
import { OwnStatements } from './own-statements.ts';
import type { RecordFact } from './record-fact.ts';
import type { TipFact } from './tip-fact.ts';

/** A package found on the main branch. */
export interface FolderFact {
  readonly path: string;
  readonly tree: Oid;
  readonly kptfileBlob: Oid;
  /** Of its placeholder, where that is known already. */
  readonly uid?: string;
}

/** The evaluation of a ref when it pointed to `oid`. */
export interface RefFact {
  readonly uid: string;
  readonly outOfBand: LazyJson<OutOfBand> | undefined;
  readonly oid: Oid;
  readonly workspace: string;
  readonly tip: TipFact;
}

/** The packages on the main branch at one head of it. */
export interface MainFact {
  readonly tip: TipFact;
  readonly folders: Map<string, FolderFact>;
}

/** Facts from Git objects. Objects never change, so an entry is never stale; a missing one only costs time. */
export class FactCache {
  /** By `<commit>:<package folder>`. Only for a short while: what is shown is kept with the revision. */
  readonly tips = new Map<string, TipFact>();
  /** By blob. */
  kptfiles = new Map<Oid, KptfileFact>();
  /** By record commit; null for one that cannot be read. */
  records = new Map<Oid, RecordFact | null>();
  /** Of writes that are under way. */
  readonly own = new OwnStatements();
  /** By tree of a package folder on the main branch: the Kptfile in it. For a short while too. */
  readonly folders = new Map<Oid, Oid>();
  /** Evaluations of an earlier process, by ref and for the main branch, until the index has used them. */
  refFacts = new Map<string, RefFact>();
  main: MainFact | undefined;
  /** Grows with everything that is read. */
  reads = 0;

  /** Number of entries. */
  get size(): number {
    return this.tips.size + this.kptfiles.size + this.records.size + this.folders.size;
  }

  /** Number of those that are kept for a short while. */
  get passing(): number {
    return this.tips.size + this.folders.size;
  }

  forgetPassing(): void {
    this.tips.clear();
    this.folders.clear();
  }

  /** Returns a function that drops everything that is read until it is called, for a reading that leaves no trace. */
  trace(): () => void {
    const { reads } = this;
    const counts = [this.kptfiles, this.records].map((facts) => [facts, facts.size] as const);
    return () => {
      this.forgetPassing();
      for (const [facts, count] of counts) {
        if (facts.size === count) continue;
        let position = 0;
        for (const key of facts.keys()) {
          if (position >= count) facts.delete(key);
          position += 1;
        }
      }
      this.reads = reads;
    };
  }

  /** The index has taken it over. */
  forgetEarlier(): void {
    this.refFacts = new Map();
    this.main = undefined;
  }

  /** Drops all Kptfiles and records that are not in another cache, and shares those of the other one. */
  keepOnly({ kptfiles, records }: FactCache): void {
    this.forgetPassing();
    this.kptfiles = kptfiles;
    this.records = records;
  }
}
