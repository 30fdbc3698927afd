import type { Oid } from '../../../git/git-repository.ts';
import type { CommitInfo } from '../../model/revision/package-revision.ts';
import type { Signer } from '../../trust/repository-trust.ts';
import type { LazyJson } from './lazy-json.ts';

/** The facts about a commit that are independent of the folder. */
export type CommitText = Omit<CommitInfo, 'oid' | 'tree' | 'kptfileBlob' | 'signer'>;

/** A commit and its content in one folder; its message is kept as text. */
export class TipFact {
  readonly oid: Oid;
  readonly tree: Oid | undefined;
  readonly kptfileBlob: Oid | undefined;
  readonly text: LazyJson<CommitText>;
  /** Memos about the statement that it carries, which never change; undefined until they were found out. */
  signer: Signer;
  /** True if the commit was on the main branch when it was first seen. */
  onMain: boolean | undefined;

  constructor(oid: Oid, tree: Oid | undefined, kptfileBlob: Oid | undefined, text: LazyJson<CommitText>) {
    this.oid = oid;
    this.tree = tree;
    this.kptfileBlob = kptfileBlob;
    this.text = text;
  }

  get info(): CommitInfo {
    const { oid, tree, kptfileBlob, signer } = this;
    return { ...this.text.value, oid, tree, kptfileBlob, signer };
  }
}
