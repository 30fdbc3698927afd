import type { Oid } from '../../../git/git-repository.ts';
import type { RepositoryLayout } from '../../model/identity/layout.ts';
import type { RevisionRecord } from '../../model/record/record.ts';
import { isPlaceholder, type OutOfBand, type PackageRevision } from '../../model/revision/package-revision.ts';
import { ADOPTION_SCOPE, type Adoption, type AdoptionList } from '../../trust/adoption.ts';
import { revoked } from '../../trust/distrust.ts';
import {
  keptScope,
  type PublishedTag,
  parsePublicationDigest,
  publicationDigest,
  publicationScope,
} from '../../trust/ledger/publication-mark.ts';
import { DELETED, type Mark } from '../../trust/ledger/trust-ledger.ts';
import type { RepositoryTrust } from '../../trust/repository-trust.ts';
import type { Candidate } from '../facts/candidate.ts';
import type { RecordFact } from '../facts/record-fact.ts';

/** The inputs of the rules besides a candidate itself. */
export interface TrustView {
  readonly layout: RepositoryLayout;
  readonly trust: RepositoryTrust;
  /** Returns whether a commit is on the first-parent line of `head`; undefined while that line was not read. */
  isOnLine(commit: Oid, head: Oid): boolean | undefined;
  /** True for a commit or tag with a statement that this process makes and that is not shown yet. */
  isUnderWay(oid: Oid): boolean;
}

const NOTHING_ADOPTED: AdoptionList = new Map();
const NO_RECORD = { record: undefined, statement: undefined, recordDistrust: undefined };
const UNREADABLE = {
  reason: 'Unsigned',
  message: 'its record ref does not point to a record, or the record is larger than a mebibyte',
} as const;
const REMOVED = { reason: 'RolledBack', message: 'its record was removed' } as const;

/** Returns the usable part of a record that may be outdated: no verdicts and no approvals. */
function unproven({ approvals: _approvals, settled: _settled, ...record }: RevisionRecord): RevisionRecord {
  return { ...record, verdicts: [] };
}

/** The rules by which publications and records of a repository count: by their statements, the trust ledger, and adoptions. */
export class TrustRules {
  readonly #view: TrustView;
  /** The content of the adoption ref; it may be read again after keys changed. */
  adoption: Adoption | undefined;
  /** Tags that count as they are: the list of the adoption while that is trusted. */
  #adopted: AdoptionList;

  /** `earlier` are the rules that these start from. */
  constructor(view: TrustView, earlier?: TrustRules) {
    this.#view = view;
    this.adoption = earlier?.adoption;
    this.#adopted = earlier === undefined ? NOTHING_ADOPTED : earlier.#adopted;
  }

  /** Applies a change of the adoption or of the trusted keys. Returns true if the set of adopted tags changed. */
  followAdoption(): boolean {
    const before = this.#adopted;
    this.#adopted = this.#trustedList();
    return this.#adopted !== before;
  }

  /** True for a publication that counts. */
  isInBand(candidate: Candidate): boolean {
    if (candidate.lifecycle !== 'Published' || isPlaceholder(candidate)) return false;
    if (this.#countsByAdoption(candidate)) return true;
    return candidate.outOfBand === undefined && this.distrustOfTag(candidate) === undefined;
  }

  #countsByAdoption(candidate: Candidate): boolean {
    return this.isListed(candidate) && this.replacementOf(candidate) === undefined;
  }

  /** True for a publication that an operator adopted as it is. */
  isListed({ lifecycle, ref, refOid }: Candidate): boolean {
    return lifecycle === 'Published' && this.#adopted.get(ref) === refOid;
  }

  #trustedList(): AdoptionList {
    const { fact, list } = this.adoption ?? {};
    if (list === undefined || fact === undefined) return NOTHING_ADOPTED;
    return this.#view.trust.distrustOfRecord(fact, ADOPTION_SCOPE) === undefined ? list : NOTHING_ADOPTED;
  }

  /** The record as far as it is trusted. */
  recordOf(
    { path, key, lifecycle }: Candidate,
    recordOid: Oid | undefined,
    fact: RecordFact | undefined,
  ): Pick<PackageRevision, 'record' | 'statement' | 'recordDistrust'> {
    const { trust } = this.#view;
    const scope = { package: path, workspace: key.workspace };
    if (recordOid === undefined) {
      const mark = lifecycle === 'Published' ? undefined : trust.mark(scope);
      if (mark === undefined || mark.digest === DELETED) return NO_RECORD;
      return { ...NO_RECORD, recordDistrust: { ...REMOVED, behind: mark.sequence } };
    }
    if (fact === undefined) return { ...NO_RECORD, recordDistrust: UNREADABLE };
    const { statement } = fact;
    const recordDistrust = trust.distrustOfRecord(statement, scope);
    if (recordDistrust !== undefined || statement === undefined) return { ...NO_RECORD, recordDistrust };
    const forPublication = fact.record.deleted ?? fact.record.published;
    if (lifecycle !== 'Published' && forPublication !== undefined) {
      const message = `its record was written for the publication ${path}/${forPublication}`;
      return { ...NO_RECORD, recordDistrust: { reason: 'OtherRevision', message } };
    }
    const record = trust.isProven(scope, statement, fact.isOwn) ? fact.record : unproven(fact.record);
    return { record, statement, recordDistrust };
  }

  /**
   * Returns why the statement of a publication does not count; undefined if it does, or if there is another flaw already.
   */
  distrustOfTag(candidate: Candidate): OutOfBand | undefined {
    if (candidate.lifecycle !== 'Published' || candidate.outOfBand !== undefined) return undefined;
    const distrust = this.#view.trust.distrustOfSigner(candidate.tip.signer);
    if (distrust !== undefined) return distrust;
    return this.#revocationOf(candidate) ?? this.#offMain(candidate) ?? this.replacementOf(candidate);
  }

  /** A key that is revoked signs on, with any date: only publications that are known to be older count. */
  #revocationOf(candidate: Candidate): OutOfBand | undefined {
    const { trust, isOnLine } = this.#view;
    const { tip } = candidate;
    const revocation = trust.revocationOf(tip.signer);
    if (revocation === undefined) return undefined;
    const { key, head, order } = revocation;
    const tag = publishedTagOf(candidate);
    // A commit on the main branch has contained its statement since it was created; a tag can be added at any later
    // time.
    if (tag.statementTag !== undefined) {
      const mark = this.#markOf(candidate);
      return mark?.digest === publicationDigest(tag) && mark.order <= order ? undefined : revoked(key);
    }
    const known = head === undefined ? false : isOnLine(tip.oid, head);
    if (known === undefined)
      return { reason: 'Unverified', message: 'whether its key was revoked before is not known yet' };
    return known ? undefined : revoked(key);
  }

  /** Returns why a publication that was deleted or replaced does not count. */
  replacementOf(candidate: Candidate): OutOfBand | undefined {
    const mark = this.#markOf(candidate);
    const tag = publishedTagOf(candidate);
    if (mark === undefined || mark.digest === publicationDigest(tag)) return undefined;
    // Its mark is raised when it is committed.
    if (this.#view.isUnderWay(tag.statementTag ?? tag.commit)) return undefined;
    const { commit, isDeleted } = parsePublicationDigest(mark.digest);
    const flaw = { reason: 'RolledBack', behind: mark.sequence };
    if (isDeleted && commit === tag.commit)
      return { ...flaw, message: 'it was deleted, and a push brought its tag back' };
    const last = isDeleted ? 'deleted since' : 'the last one published';
    const what = `${candidate.path}/v${candidate.revision}`;
    return { ...flaw, message: `a push set ${what} back: the publication at ${commit} is ${last}` };
  }

  #offMain(candidate: Candidate): OutOfBand | undefined {
    const { tip } = candidate;
    if (tip.onMain === true || this.#isKept(candidate)) return undefined;
    if (tip.onMain === undefined)
      return { reason: 'Unverified', message: 'whether its commit is on the main branch is not known yet' };
    return { reason: 'NotOnMain', message: 'its commit was not on the main branch when it was first seen' };
  }

  /** True for a publication that counted when an operator accepted that the main branch was rewritten without it. */
  #isKept(candidate: Candidate): boolean {
    const { trust, layout } = this.#view;
    const mark = trust.mark(keptScope(layout.branch, candidate.path, `v${candidate.revision}`));
    return mark?.digest === publicationDigest(publishedTagOf(candidate));
  }

  /** True for a ref that an operator adopted as it is. */
  isAdopted(ref: string, oid: Oid): boolean {
    return this.#trustedList().get(ref) === oid;
  }

  /** Returns the mark in the ledger for the publication with the number of a tag. */
  #markOf({ path, revision }: Candidate): Mark | undefined {
    return this.#view.trust.mark(publicationScope(path, `v${revision}`));
  }

  /** True for a publication that would count, whatever was published under its number before or after it. */
  wouldCount(candidate: Candidate): boolean {
    const { lifecycle, outOfBand, tip } = candidate;
    if (lifecycle !== 'Published' || outOfBand !== undefined || this.#offMain(candidate) !== undefined) return false;
    if (this.#view.trust.distrustOfSigner(tip.signer) !== undefined) return false;
    return this.#revocationOf(candidate) === undefined;
  }
}

/** Returns a tag in the form of its mark. A lightweight tag contains no text, so none is read. */
export function publishedTagOf({ refOid, tip }: Candidate): PublishedTag {
  return { commit: tip.oid, statementTag: refOid === tip.oid ? undefined : tip.text.value.statementTag };
}
