import type { Kptfile } from '../../../../kptfile-schema/index.ts';
import { digest } from '../../../foundation/text/canonical-json.ts';
import type { Oid } from '../../../git/git-repository.ts';
import type { RevisionKey } from '../../model/identity/identity.ts';
import type { RevisionRecord } from '../../model/record/record.ts';
import {
  type CommitInfo,
  isPlaceholder,
  type OutOfBand,
  type PackageRevision,
} from '../../model/revision/package-revision.ts';
import type { Lifecycle } from '../../model/revision/revision-state.ts';
import type { Distrust } from '../../trust/distrust.ts';
import type { StatementFact } from '../../trust/repository-trust.ts';
import type { Candidate } from '../facts/candidate.ts';
import type { KptfileFact } from '../facts/kptfile-fact.ts';
import type { LazyJson } from '../facts/lazy-json.ts';
import type { TipFact } from '../facts/tip-fact.ts';

/** The state of a revision in addition to that of its ref. */
interface Completion
  extends Pick<
    PackageRevision,
    'lifecycle' | 'latest' | 'record' | 'recordOid' | 'statement' | 'recordDistrust' | 'hides'
  > {
  readonly outOfBand: LazyJson<OutOfBand> | undefined;
}

/** A row of the index. Parts that most rows never need are computed on demand. */
export class IndexedRevision implements PackageRevision {
  readonly key: RevisionKey;
  readonly namespace: string;
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
  readonly record: RevisionRecord | undefined;
  readonly recordOid: Oid | undefined;
  readonly statement: StatementFact | undefined;
  readonly recordDistrust: Distrust | undefined;
  readonly hides: readonly string[];
  readonly #outOfBand: LazyJson<OutOfBand> | undefined;
  readonly #fact: KptfileFact;
  readonly #tip: TipFact;
  #etag: string | undefined;

  constructor(candidate: Candidate, completion: Completion) {
    this.key = candidate.key;
    this.namespace = candidate.namespace;
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
    this.record = completion.record;
    this.recordOid = completion.recordOid;
    this.statement = completion.statement;
    this.recordDistrust = completion.recordDistrust;
    this.#outOfBand = completion.outOfBand;
    this.hides = completion.hides;
    this.#fact = candidate.fact;
    this.#tip = candidate.tip;
  }

  get outOfBand(): OutOfBand | undefined {
    return this.#outOfBand?.value;
  }

  get kptfile(): Kptfile | undefined {
    return this.#fact.kptfile;
  }

  get tip(): CommitInfo {
    return this.#tip.info;
  }

  get etag(): string {
    this.#etag ??= digest(
      [
        ...[this.name, this.ref],
        // Every publication moves the main branch; the placeholders of other packages must not change by that.
        isPlaceholder(this) ? this.#tip.tree : this.refOid,
        ...[this.recordOid, this.lifecycle, this.latest, this.outOfBand?.message],
        ...[this.record !== undefined, this.recordDistrust?.message],
        // A record of which not all counts.
        ...[this.record?.verdicts.length, this.record?.approvals === undefined, this.record?.settled === undefined],
        ...this.hides,
      ].join('\n'),
    );
    return this.#etag;
  }
}
