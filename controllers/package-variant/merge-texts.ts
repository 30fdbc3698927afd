import type { Oid } from '../../src/git/git-repository.ts';
import { parseCommitMessage } from '../../src/package/model/record/commit-message.ts';
import { isPublished, type PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { RepositoryContext } from '../../src/package/plan/ports/repository-context.ts';
import { commitsMade } from '../../src/package/plan/records/record-chain.ts';
import type { RevisionSource } from '../../src/package/upstream/revision-source.ts';
import { keyText, type ObjectKey } from '../../src/resource/object/object.ts';

/** Commits of a draft that are searched, the last ones: users can push any number of them. */
const MAX_COMMITS = 100;
const CREATIONS: readonly string[] = ['init', 'copy', 'clone', 'upgrade'] satisfies RevisionSource['type'][];

type Sources = Pick<RepositoryContext, 'git' | 'trust'>;

/** What one merge did. Two merges can do the same: their commits differ. */
export interface MergeText {
  readonly commit: Oid;
  readonly text: string;
}

/** What the merges of a revision did to changes of users, the last merge first. */
export interface MergeTexts {
  readonly overwritten: readonly MergeText[];
  readonly kept: readonly MergeText[];
}

const NONE: MergeTexts = { overwritten: [], kept: [] };

/**
 * What merges in the open revisions of variants overwrote, and kept. The commits of the merges record it: a process that ends before it has written
 * the status of the variant loses no report. Anyone who may push can write the same trailers, so that only commits count that a trusted record names.
 */
export class MergeTextReader {
  /** By variant. They are read again when the revision has another commit or record, or its record counts now or does no longer. */
  readonly #read = new Map<string, { readonly of: string; readonly texts: MergeTexts }>();

  /** The texts of the last commits of the revision, the last one first; none for a published revision. */
  async of(variant: ObjectKey, revision: PackageRevision, repository: Sources): Promise<MergeTexts> {
    const key = keyText(variant);
    if (isPublished(revision)) {
      this.#read.delete(key);
      return NONE;
    }
    const known = this.#read.get(key);
    const { commit, recordOid, statement } = revision;
    const of = [commit, recordOid, statement?.digest].join(' ');
    if (known?.of === of) return known.texts;
    const texts = await readMerges(repository, revision);
    this.#read.set(key, { of, texts });
    return texts;
  }

  forget(variant: ObjectKey): void {
    this.#read.delete(keyText(variant));
  }
}

async function readMerges(repository: Sources, revision: PackageRevision): Promise<MergeTexts> {
  const texts = { overwritten: [] as MergeText[], kept: [] as MergeText[] };
  const made = await commitsMade(repository, revision);
  let next: Oid | undefined = made.size === 0 ? undefined : revision.commit;
  for (let count = 0; next !== undefined && count < MAX_COMMITS; count += 1) {
    const { message, parents } = await repository.git.readCommit(next);
    if (made.has(next)) {
      const { action = '', overwritten, kept } = parseCommitMessage(message);
      if (overwritten !== undefined) texts.overwritten.push({ commit: next, text: overwritten });
      if (kept !== undefined) texts.kept.push({ commit: next, text: kept });
      if (CREATIONS.includes(action)) break;
    }
    // The other parent of a rebase is the main branch.
    next = parents[0];
  }
  return texts;
}
