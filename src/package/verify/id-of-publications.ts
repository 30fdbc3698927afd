import type { Commit, GitRepository, Oid, Ref } from '../../git/git-repository.ts';
import { targetOfTag } from '../../git/objects/tag-codec.ts';
import { mainRef, type RepositoryLayout } from '../model/identity/layout.ts';
import { type PublicationStatement, parseCommitMessage, parseTagStatement } from '../model/record/commit-message.ts';
import type { TrustLedger } from '../trust/ledger/trust-ledger.ts';
import type { SignedStatement } from '../trust/statement/statement.ts';
import { readHistoryCommit } from './history-commit.ts';
import { distrustOfId } from './read-only-trust.ts';

type Signed = SignedStatement<PublicationStatement>;

interface Place {
  readonly git: GitRepository;
  readonly refs: readonly Ref[];
  readonly layout: RepositoryLayout;
  readonly ledger: TrustLedger;
}

/**
 * Returns the id that the publications on the main branch were made for, where the id itself is missing, as in a clone. Undefined if they
 * do not agree. A tag can be a copy from another repository, so only statements count that were made for their place in the history of this branch;
 * those of other keys count only where there is no trusted one, as nothing is in band then.
 */
export async function idOfPublications({ git, refs, layout, ledger }: Place): Promise<string | undefined> {
  const tags = await statementsOfTags(git, refs);
  const claims = new Map<string, Signed[]>();
  for await (const { oid, commit } of historyOf(git, refs.find(({ name }) => name === mainRef(layout))?.oid)) {
    const own = parseCommitMessage(commit.message).statement;
    for (const signed of [...(own === undefined ? [] : [own]), ...(tags.get(oid) ?? [])]) {
      const { repository, branch, onto } = signed.statement;
      if (branch !== layout.branch || onto !== commit.parents[0]) continue;
      const statements = claims.get(repository) ?? [];
      statements.push(signed);
      claims.set(repository, statements);
    }
  }
  const trusted: string[] = [];
  for (const [id, statements] of claims) if (await hasTrusted(statements, ledger)) trusted.push(id);
  const [id, ...others] = trusted.length > 0 ? trusted : claims.keys();
  return others.length === 0 ? id : undefined;
}

async function hasTrusted(statements: readonly Signed[], ledger: TrustLedger): Promise<boolean> {
  for (const signed of statements) if ((await distrustOfId(signed, ledger)) === undefined) return true;
  return false;
}

/** The statements in annotated tags, by the commit that they point to. */
async function statementsOfTags(git: GitRepository, refs: readonly Ref[]): Promise<ReadonlyMap<Oid, Signed[]>> {
  const found = new Map<Oid, Signed[]>();
  const oids = refs.flatMap(({ name, oid }) => (name.startsWith('refs/tags/') ? oid : []));
  const tags = (await git.statObjects(oids)).flatMap((found) => (found?.type === 'tag' ? found.oid : []));
  for (const object of await git.readObjects(tags)) {
    if (object === undefined) continue;
    const signed = parseTagStatement(object.data);
    const target = targetOfTag(object.data);
    if (signed !== undefined && target !== undefined) found.set(target, [...(found.get(target) ?? []), signed]);
  }
  return found;
}

/**
 * All commits below the head, each once. Of a merge every parent counts: a push chooses which one is first, and could
 * so hide the history of this repository behind that of another one.
 */
async function* historyOf(git: GitRepository, head: Oid | undefined): AsyncGenerator<{ oid: Oid; commit: Commit }> {
  const next = head === undefined ? [] : [head];
  const seen = new Set(next);
  for (let oid = next.pop(); oid !== undefined; oid = next.pop()) {
    const commit = await readHistoryCommit(git, oid);
    if (commit === undefined) continue;
    yield { oid, commit };
    for (const parent of commit.parents) {
      if (seen.has(parent)) continue;
      seen.add(parent);
      next.push(parent);
    }
  }
}
