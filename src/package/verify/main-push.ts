import { type GitRepository, type Oid, ZERO_OID } from '../../git/git-repository.ts';
import { evaluatePublication } from '../kernel/publication.ts';
import type { RepositoryLayout } from '../model/identity/layout.ts';
import { parseCommitMessage, parseRemoval } from '../model/record/commit-message.ts';
import type { RecordStatement } from '../model/record/record.ts';
import type { RepositoryTrust } from '../trust/repository-trust.ts';
import type { SignedStatement } from '../trust/statement/statement.ts';
import type { PushedRef } from './pushed-ref.ts';
import { taggedCommit } from './tagged-commit.ts';

/** Commits that one push may bring to the main branch. A request of the server has 128 publications at most. */
const MAX_MAIN_COMMITS = 1000;

interface Surroundings {
  readonly git: GitRepository;
  readonly layout: RepositoryLayout;
  readonly trust: RepositoryTrust;
  /** Refs as they are once the push is accepted. */
  readonly after: ReadonlyMap<string, Oid>;
}

/** Checks whether the main branch may move as in a push. */
export class MainPush {
  readonly #git: GitRepository;
  readonly #layout: RepositoryLayout;
  readonly #trust: RepositoryTrust;
  readonly #after: ReadonlyMap<string, Oid>;
  #line: Promise<readonly Oid[] | string> | undefined;

  constructor({ git, layout, trust, after }: Surroundings) {
    this.#git = git;
    this.#layout = layout;
    this.#trust = trust;
    this.#after = after;
  }

  /** Each new commit on the main branch publishes one package, or removes one, and changes nothing else. */
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
      if (removal === undefined) return 'it carries no signed statement; publish through Sluice';
      return this.#removal(removal, { parent, tree });
    }
    const [folder] = await this.#git.statObjects([`${tree}:${statement.package}`]);
    const evaluation = evaluatePublication({
      ...{ parents, branch: this.#layout.branch, subject: message.split('\n', 1)[0] ?? '', commit: facts },
      ...{ repository: this.#trust.repository, path: statement.package, version: `v${statement.revision}` },
      tree: folder?.oid,
    });
    if (!evaluation.inBand) return evaluation.message;
    if (facts.statement !== undefined) {
      const signer = await this.#trust.signerOf(facts.statement);
      const distrust = this.#trust.distrustOfSigner(signer) ?? this.#trust.revocationOfNew(signer);
      if (distrust !== undefined) return distrust.message;
    }
    const other = await this.#otherChange(statement.package, { parent, tree });
    if (other !== undefined) return other;
    // Its message and its tree can be those of an earlier publication: the tag of the number determines which commit is the publication.
    const tag = `refs/tags/${statement.package}/v${statement.revision}`;
    const tagged = this.#after.get(tag);
    if (tagged !== undefined && (await taggedCommit(this.#git, tagged)) === oid) return undefined;
    return `it carries the statement of ${statement.package}/v${statement.revision}, and ${tag} does not point to it`;
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
    return this.#otherChange(path, { parent, tree });
  }

  async #otherChange(
    packagePath: string,
    { parent, tree }: { readonly parent: Oid; readonly tree: Oid },
  ): Promise<string | undefined> {
    const changes = await this.#git.diffTrees((await this.#git.readCommit(parent)).tree, tree);
    const other = changes.find(({ path }) => !path.startsWith(`${packagePath}/`));
    return other === undefined ? undefined : `it also changes ${other.path}, which is no part of ${packagePath}`;
  }
}
