import { type GitRepository, type Oid, ZERO_OID } from '../../git/git-repository.ts';
import { evaluatePublication } from '../kernel/publication.ts';
import type { RepositoryLayout } from '../model/identity/layout.ts';
import {
  type CommitFacts,
  type PublicationStatement,
  parseCommitMessage,
  parseRemoval,
} from '../model/record/commit-message.ts';
import type { RecordStatement } from '../model/record/record.ts';
import type { RepositoryTrust } from '../trust/repository-trust.ts';
import type { SignedStatement } from '../trust/statement/statement.ts';
import type { PushedRef } from './pushed-ref.ts';
import { readTagStatement } from './tag-statement.ts';
import { taggedCommit } from './tagged-commit.ts';

/** Commits that one push may bring to the main branch. A request of the server has 128 at most, of which one can publish hundreds of packages. */
const MAX_MAIN_COMMITS = 1000;

interface Surroundings {
  readonly git: GitRepository;
  readonly layout: RepositoryLayout;
  readonly trust: RepositoryTrust;
  /** Refs as they are once the push is accepted. */
  readonly after: ReadonlyMap<string, Oid>;
  readonly pushed: readonly PushedRef[];
}

interface CommitFactsOf {
  readonly oid: Oid;
  readonly parents: readonly Oid[];
  readonly tree: Oid;
  /** With the statement to be checked. */
  readonly facts: CommitFacts;
}

interface SharedTag {
  readonly ref: string;
  readonly tag: Oid;
  readonly signed: SignedStatement<PublicationStatement>;
}

/** Checks whether the main branch may move as in a push. */
export class MainPush {
  readonly #git: GitRepository;
  readonly #layout: RepositoryLayout;
  readonly #trust: RepositoryTrust;
  readonly #after: ReadonlyMap<string, Oid>;
  readonly #pushed: readonly PushedRef[];
  #shared: Promise<ReadonlyMap<string, readonly SharedTag[]>> | undefined;
  #line: Promise<readonly Oid[] | string> | undefined;

  constructor({ git, layout, trust, after, pushed }: Surroundings) {
    this.#git = git;
    this.#layout = layout;
    this.#trust = trust;
    this.#after = after;
    this.#pushed = pushed;
  }

  /** Each new commit on the main branch publishes packages, or removes one, and changes nothing else. */
  async refusalOf(update: PushedRef): Promise<string | undefined> {
    // The first push of a repository.
    if (update.old === ZERO_OID) return undefined;
    const line = await this.lineOf(update);
    if (typeof line === 'string') return line;
    for (const oid of line) {
      const flaw = await this.#flawOf(oid);
      if (flaw !== undefined) return `commit ${oid}: ${flaw}`;
    }
    return undefined;
  }

  /** The commits that a push brings to the main branch, or why it must not. */
  lineOf({ old, new: head }: PushedRef): Promise<readonly Oid[] | string> {
    const walk = async () => {
      const line: Oid[] = [];
      for (let oid: Oid | undefined = head; oid !== old; oid = (await this.#git.readCommit(oid)).parents[0]) {
        // The first push of a repository brings all of it.
        if (oid === undefined)
          return old === ZERO_OID ? line : `it rewrites the main branch: ${old} is not on its line any more`;
        if (line.length >= MAX_MAIN_COMMITS)
          return `it brings more than ${MAX_MAIN_COMMITS} commits, or rewrites the branch`;
        line.push(oid);
      }
      return line;
    };
    this.#line ??= walk();
    return this.#line;
  }

  async #flawOf(oid: Oid): Promise<string | undefined> {
    const { message, parents, tree } = await this.#git.readCommit(oid);
    const [parent] = parents;
    if (parent === undefined) return 'it has no parent';
    const facts = parseCommitMessage(message);
    const statement = facts.statement?.statement;
    if (statement === undefined) {
      const removal = parseRemoval(message);
      if (removal !== undefined) return this.#removal(removal, { parent, tree });
      return this.#flawOfShared({ oid, parents, parent, tree, facts });
    }
    const flaw = await this.#flawOfStatement({ oid, parents, tree, facts });
    if (flaw !== undefined) return flaw;
    const other = await this.#otherChange([statement.package], { parent, tree });
    if (other !== undefined) return other;
    // Its message and its tree can be those of an earlier publication: the tag of the number determines which commit is the publication.
    const tag = `refs/tags/${statement.package}/v${statement.revision}`;
    const tagged = this.#after.get(tag);
    if (tagged !== undefined && (await taggedCommit(this.#git, tagged)) === oid) return undefined;
    return `it carries the statement of ${statement.package}/v${statement.revision}, and ${tag} does not point to it`;
  }

  /** Each package that changes in a commit of several publications has a statement in a tag on it, which comes with the push. */
  async #flawOfShared(commit: CommitFactsOf & { readonly parent: Oid }): Promise<string | undefined> {
    const { oid, facts } = commit;
    const packages: string[] = [];
    this.#shared ??= this.#readShared();
    for (const { ref, tag, signed } of (await this.#shared).get(oid) ?? []) {
      const { package: path, revision } = signed.statement;
      if (ref !== `refs/tags/${path}/v${revision}`) return `${ref} has the statement of ${path}/v${revision}`;
      if ((await taggedCommit(this.#git, tag)) !== oid) return `${ref} does not point to it`;
      const flaw = await this.#flawOfStatement({ ...commit, facts: { ...facts, statement: signed } });
      if (flaw !== undefined) return flaw;
      packages.push(path);
    }
    if (packages.length === 0) return 'it carries no signed statement; publish through Sluice';
    return this.#otherChange(packages, commit);
  }

  /** The pushed tags with statements that name a commit, by that commit. */
  async #readShared(): Promise<ReadonlyMap<string, readonly SharedTag[]>> {
    const found = new Map<string, SharedTag[]>();
    for (const { ref, new: tag } of this.#pushed) {
      if (!ref.startsWith('refs/tags/') || tag === ZERO_OID) continue;
      const signed = await readTagStatement(this.#git, tag);
      const commit = signed?.statement.sharedCommit;
      if (signed === undefined || commit === undefined) continue;
      const others = found.get(commit);
      if (others === undefined) found.set(commit, [{ ref, tag, signed }]);
      else others.push({ ref, tag, signed });
    }
    return found;
  }

  async #flawOfStatement({ oid, parents, tree, facts }: CommitFactsOf): Promise<string | undefined> {
    if (facts.statement === undefined) return undefined;
    const { package: path, revision } = facts.statement.statement;
    const [folder] = await this.#git.statObjects([`${tree}:${path}`]);
    const evaluation = evaluatePublication({
      ...{ oid, parents, branch: this.#layout.branch, subject: '', commit: facts, path, version: `v${revision}` },
      ...{ repository: this.#trust.repository, tree: folder?.oid },
    });
    if (!evaluation.inBand) return evaluation.message;
    const signer = await this.#trust.signerOf(facts.statement);
    return (this.#trust.distrustOfSigner(signer) ?? this.#trust.revocationOfNew(signer))?.message;
  }

  /** A package is removed from the main branch as it was. */
  async #removal(
    signed: SignedStatement<RecordStatement>,
    { parent, tree }: { readonly parent: Oid; readonly tree: Oid },
  ): Promise<string | undefined> {
    const { package: path, workspace, record } = signed.statement;
    const fact = { head: signed.statement, digest: '', signer: await this.#trust.signerOf(signed) };
    const distrust =
      this.#trust.distrustOf(fact, { package: path, workspace }) ?? this.#trust.revocationOfNew(fact.signer);
    if (distrust !== undefined) return distrust.message;
    if (record.commit !== parent) return `its statement was made for a removal on top of ${record.commit}`;
    const [folder] = await this.#git.statObjects([`${tree}:${path}`]);
    if (folder !== undefined) return `it does not remove ${path}`;
    return this.#otherChange([path], { parent, tree });
  }

  async #otherChange(
    packages: readonly string[],
    { parent, tree }: { readonly parent: Oid; readonly tree: Oid },
  ): Promise<string | undefined> {
    const changes = await this.#git.diffTrees((await this.#git.readCommit(parent)).tree, tree);
    const other = changes.find(({ path }) => !packages.some((name) => path.startsWith(`${name}/`)));
    if (other === undefined) return undefined;
    return `it also changes ${other.path}, which is no part of ${packages.length === 1 ? packages[0] : 'the packages that it publishes'}`;
  }
}
