import type { Kptfile } from '../../../kptfile-schema/index.ts';
import type { Oid } from '../../git/git-repository.ts';
import { digest } from '../canonical-json.ts';
import type { RevisionKey } from '../identity.ts';
import type { Lifecycle } from '../kernel/types.ts';
import { type CommitInfo, isPlaceholder, type PackageRevision } from '../package-revision.ts';
import type { RevisionRecord } from '../record.ts';
import type { Candidate } from './candidate.ts';
import type { KptfileFact } from './kptfile-fact.ts';

/** What a revision is besides what its ref shows. */
type Completion = Pick<PackageRevision, 'lifecycle' | 'latest' | 'record' | 'recordOid' | 'outOfBand' | 'hides'>;

/** A row of the index. What most rows are never asked for is made when somebody asks. */
export class IndexedRevision implements PackageRevision {
  readonly key: RevisionKey;
  readonly name: string;
  readonly uid: string;
  readonly lifecycle: Lifecycle;
  readonly revision: number;
  readonly latest: boolean;
  readonly ref: string;
  readonly refOid: Oid;
  readonly commit: Oid;
  readonly path: string;
  readonly problem: string | undefined;
  readonly tip: CommitInfo;
  readonly record: RevisionRecord | undefined;
  readonly recordOid: Oid | undefined;
  readonly outOfBand: PackageRevision['outOfBand'];
  readonly hides: readonly string[];
  readonly #fact: KptfileFact;
  #etag: string | undefined;

  constructor(candidate: Candidate, completion: Completion) {
    this.key = candidate.key;
    this.name = candidate.name;
    this.uid = candidate.uid;
    this.lifecycle = completion.lifecycle;
    this.revision = candidate.revision;
    this.latest = completion.latest;
    this.ref = candidate.ref;
    this.refOid = candidate.refOid;
    this.commit = candidate.commit;
    this.path = candidate.path;
    this.problem = candidate.fact.problem;
    this.tip = candidate.tip;
    this.record = completion.record;
    this.recordOid = completion.recordOid;
    this.outOfBand = completion.outOfBand;
    this.hides = completion.hides;
    this.#fact = candidate.fact;
  }

  get kptfile(): Kptfile | undefined {
    return this.#fact.kptfile;
  }

  get etag(): string {
    this.#etag ??= digest(
      [
        ...[this.name, this.ref],
        // Every publication moves the main branch; the placeholders of other packages must not change by that.
        isPlaceholder(this) ? this.tip.tree : this.refOid,
        ...[this.recordOid, this.lifecycle, this.latest, this.outOfBand?.message],
        ...this.hides,
      ].join('\n'),
    );
    return this.#etag;
  }
}
