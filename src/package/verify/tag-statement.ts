import type { GitRepository, Oid } from '../../git/git-repository.ts';
import { type PublicationStatement, parseTagStatement } from '../model/record/commit-message.ts';
import type { SignedStatement } from '../trust/statement/statement.ts';

/** The statement in the message of an annotated tag; undefined if it has none. It is a claim until its signature is checked. */
export async function readTagStatement(
  git: GitRepository,
  oid: Oid,
): Promise<SignedStatement<PublicationStatement> | undefined> {
  const [object] = await git.readObjects([oid]);
  return object?.type === 'tag' ? parseTagStatement(object.data) : undefined;
}
