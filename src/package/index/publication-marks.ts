import type { GitRepository, Oid } from '../../git/git-repository.ts';
import { inSlices } from '../../git/in-slices.ts';
import { type RepositoryLayout, tombstoneRef } from '../layout.ts';
import {
  deletionDigest,
  parsePublicationDigest,
  publicationDigest,
  publicationScope,
} from '../trust/publication-mark.ts';
import type { RepositoryTrust } from '../trust/repository-trust.ts';
import type { Candidate } from './candidate.ts';
import { provesDeletion } from './deletion-proof.ts';
import { type IndexState, publishedTagOf } from './index-state.ts';
import type { MainLines } from './main-lines.ts';

interface Surroundings {
  readonly git: GitRepository;
  readonly layout: RepositoryLayout;
  readonly trust: RepositoryTrust;
  readonly lines: MainLines;
}

/**
 * Notes which publication of a number counts, so that a push cannot set its tag back to an earlier one. This process notes its own
 * publications and deletions when it makes them; here are those that it finds.
 */
export class PublicationMarks {
  readonly #surroundings: Surroundings;

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
      // A commit of the main branch proves by itself since when it is there.
      if (mark === undefined ? tag.statementTag !== undefined : mark.digest !== publicationDigest(tag))
        unlike.push(candidate);
    });
    for (const candidate of unlike) {
      if (!state.wouldCount(candidate)) continue;
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
    const isAdopted = state.isAdopted(ref, oid);
    return provesDeletion({ git, trust }, { oid, path, version, isAdopted }, candidate.tip.oid);
  }
}

function placeOf({ path, revision }: Candidate): { readonly path: string; readonly version: string } {
  return { path, version: `v${revision}` };
}
