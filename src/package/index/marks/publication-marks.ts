import { inSlices } from '../../../foundation/concurrency/in-slices.ts';
import type { GitRepository, Oid, RefChange } from '../../../git/git-repository.ts';
import { deletedIn, type RepositoryLayout, tombstoneRef } from '../../model/identity/layout.ts';
import {
  deletionDigest,
  parsePublicationDigest,
  publicationDigest,
  publicationScope,
} from '../../trust/ledger/publication-mark.ts';
import type { RepositoryTrust } from '../../trust/repository-trust.ts';
import type { Candidate } from '../facts/candidate.ts';
import type { MainLines } from '../facts/main-lines.ts';
import type { IndexDelta } from '../state/index-delta.ts';
import type { IndexState } from '../state/index-state.ts';
import { evaluateTombstone, provesDeletion } from '../trust/deletion-proof.ts';
import { publishedTagOf } from '../trust/trust-rules.ts';

interface Surroundings {
  readonly git: GitRepository;
  readonly layout: RepositoryLayout;
  readonly trust: RepositoryTrust;
  readonly lines: MainLines;
}

/**
 * Number of tombstones that are evaluated before the revisions are visible; with more of them, as at a first start, they
 * are evaluated in the background.
 */
const MAX_JUDGED_AT_ONCE = 256;

/** A tombstone whose deletion the ledger does not know. */
interface FoundTombstone {
  readonly ref: string;
  readonly oid: Oid;
  readonly path: string;
  readonly version: string;
  readonly tag: string;
}

/** The state of the refs once a delta is applied. */
interface After {
  readonly tag: (ref: string) => Candidate | undefined;
  readonly isAdopted: (ref: string, oid: Oid) => boolean;
}

/**
 * Notes which publication of a number counts, so that a push cannot set its tag back to an earlier one. This process notes its own
 * publications and deletions when it makes them; here are those that it finds.
 */
export class PublicationMarks {
  readonly #surroundings: Surroundings;
  /** Pending ones for `evaluateBacklog`. */
  #tombstones: FoundTombstone[] = [];

  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings;
  }

  /**
   * Notes publications that count and whose tags are about to move or to go; `refAfter` gives where a ref will be. To be called before
   * `noteFound` for what comes in their place.
   */
  async noteReplaced(
    state: IndexState,
    candidates: ReadonlyMap<string, Candidate | undefined>,
    refAfter: (ref: string) => Oid | undefined,
  ): Promise<void> {
    const { trust } = this.#surroundings;
    for (const [ref, after] of candidates) {
      const before = state.candidates.get(ref);
      if (before?.lifecycle !== 'Published' || before.refOid === after?.refOid) continue;
      const row = state.rows.get(before.name);
      if (row?.refOid !== before.refOid || row.ref !== ref || row.outOfBand !== undefined) continue;
      const { path, version } = placeOf(before);
      const tag = publishedTagOf(before);
      const mark = trust.mark(publicationScope(path, version));
      const isDeleted = after === undefined && (await this.#wasDeleted(state, before, refAfter));
      const digest = isDeleted ? deletionDigest(tag) : publicationDigest(tag);
      if (mark === undefined || (isDeleted && mark.digest === publicationDigest(tag)))
        trust.raise([trust.markOfPublication(path, version, digest)], isDeleted);
    }
  }

  /** Notes publications that are found under a number that was used before, and later ones alone; and those whose statement is in a tag. */
  async noteFound(state: IndexState, candidates: Iterable<Candidate | undefined>): Promise<void> {
    const { trust, lines } = this.#surroundings;
    const unlike: Candidate[] = [];
    await inSlices(candidates, (candidate) => {
      if (candidate?.lifecycle !== 'Published') return;
      const { path, version } = placeOf(candidate);
      const mark = trust.mark(publicationScope(path, version));
      const tag = publishedTagOf(candidate);
      // A commit of the main branch proves when it was added.
      if (mark === undefined ? tag.statementTag !== undefined : mark.digest !== publicationDigest(tag))
        unlike.push(candidate);
    });
    for (const candidate of unlike) {
      if (!state.rules.wouldCount(candidate)) continue;
      const { path, version } = placeOf(candidate);
      const mark = trust.mark(publicationScope(path, version));
      const tag = publishedTagOf(candidate);
      if (mark !== undefined) {
        const { commit } = parsePublicationDigest(mark.digest);
        if (commit === tag.commit || !(await lines.find(new Set([commit]), tag.commit)).has(commit)) continue;
      }
      trust.raise([trust.markOfPublication(path, version, publicationDigest(tag))], false);
    }
  }

  /**
   * Notes deletions that only the tombstone shows: those of other servers, and those of a process that ended before it noted them.
   */
  async noteDeleted(
    state: IndexState,
    { refs, candidates, adoption }: IndexDelta,
    isFirstLook: boolean,
  ): Promise<void> {
    const found = await this.#unknown(refs);
    if (found.length > MAX_JUDGED_AT_ONCE) {
      this.#tombstones.push(...found);
      return;
    }
    const list = adoption === undefined ? undefined : (adoption.present?.list ?? new Map<string, Oid>());
    const after: After = {
      tag: (ref) => (candidates.has(ref) ? candidates.get(ref) : state.candidates.get(ref)),
      isAdopted: (ref, oid) => (list === undefined ? state.rules.isAdopted(ref, oid) : list.get(ref) === oid),
    };
    for (const tombstone of found) await this.#noteTombstone(tombstone, after, isFirstLook);
  }

  get hasBacklog(): boolean {
    return this.#tombstones.length > 0;
  }

  /** Evaluates the remaining tombstones. Yields the affected packages in batches. */
  async *evaluateBacklog(current: () => IndexState): AsyncGenerator<ReadonlySet<string>> {
    while (this.#tombstones.length > 0) {
      const slice = this.#tombstones.slice(0, MAX_JUDGED_AT_ONCE);
      const packages = new Set<string>();
      for (const tombstone of slice) {
        const state = current();
        const tag = state.candidates.get(tombstone.tag);
        if (tag !== undefined) packages.add(tag.key.package);
        if (state.refs.get(tombstone.ref) !== tombstone.oid) continue;
        const after: After = {
          tag: (ref) => state.candidates.get(ref),
          isAdopted: (ref, oid) => state.rules.isAdopted(ref, oid),
        };
        await this.#noteTombstone(tombstone, after, true);
      }
      // Removed only now, so that a failed evaluation is repeated.
      this.#tombstones.splice(0, slice.length);
      yield packages;
    }
  }

  async #unknown(refs: readonly RefChange[]): Promise<FoundTombstone[]> {
    const { layout, trust } = this.#surroundings;
    const found: FoundTombstone[] = [];
    await inSlices(refs, ({ name: ref, after: oid }) => {
      const place = oid === undefined ? undefined : deletedIn(layout, ref);
      if (place === undefined || oid === undefined) return;
      const mark = trust.mark(publicationScope(place.path, place.version));
      if (mark === undefined || !parsePublicationDigest(mark.digest).isDeleted) found.push({ ...place, ref, oid });
    });
    return found;
  }

  async #noteTombstone(
    { ref, oid, path, version, tag: tagRef }: FoundTombstone,
    after: After,
    isFirstLook: boolean,
  ): Promise<void> {
    const { trust } = this.#surroundings;
    const result = await evaluateTombstone(this.#surroundings, {
      oid,
      path,
      version,
      isAdopted: after.isAdopted(ref, oid),
    });
    if (result.flaw !== undefined) return;
    const { commit, statement } = result;
    const mark = trust.mark(publicationScope(path, version));
    const tag = after.tag(tagRef);
    // Another publication has the number since, or an operator adopted this one after it was deleted.
    if (mark !== undefined && parsePublicationDigest(mark.digest).commit !== commit) return;
    if (tag !== undefined && tag.tip.oid !== commit) return;
    if (tag !== undefined && mark !== undefined && after.isAdopted(tagRef, tag.refOid)) return;
    const scope = statement && { package: path, workspace: statement.head.workspace };
    const ofRecord = statement && scope && trust.markOfFound(statement, scope, isFirstLook);
    const deletion = trust.markOfPublication(path, version, deletionDigest({ commit, statementTag: undefined }));
    trust.raise(ofRecord === undefined ? [deletion] : [deletion, ofRecord], false);
  }

  async #wasDeleted(
    state: IndexState,
    candidate: Candidate,
    refAfter: (ref: string) => Oid | undefined,
  ): Promise<boolean> {
    const { git, layout, trust } = this.#surroundings;
    const { path, version } = placeOf(candidate);
    const ref = tombstoneRef(layout, candidate.key.package, version);
    const oid = refAfter(ref);
    if (oid === undefined) return false;
    const isAdopted = state.rules.isAdopted(ref, oid);
    return provesDeletion({ git, trust }, { oid, path, version, isAdopted }, candidate.tip.oid);
  }
}

function placeOf({ path, revision }: Candidate): { readonly path: string; readonly version: string } {
  return { path, version: `v${revision}` };
}
