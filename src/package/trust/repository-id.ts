import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { GitRepository, Oid } from '../../git/git-repository.ts';
import {
  parseStatement,
  type SignedStatement,
  type StatementHead,
  statementHeadSchema,
} from './statement/statement.ts';

/**
 * A repository has a random id, which is created once, stored in Git, and part of every statement: a statement that is copied
 * to another repository is invalid there. The id is itself a signed statement, on `refs/sluice/repository`.
 */
export interface RepositoryIdStatement extends StatementHead {
  readonly kind: 'repository';
}

/** `newRepositoryId` creates ids; at the first sync any push can contain one. */
const schema = statementHeadSchema.extend({
  kind: z.literal('repository'),
  repository: z.string().regex(/^[A-Za-z0-9-]{1,64}$/),
});

export function newRepositoryId(): string {
  return randomUUID();
}

/** Scope of the statements about the repository itself. */
export const REPOSITORY_SCOPE = { package: '', workspace: 'repository' } as const;

/** Reads the id from its commit message. Throws Corrupt if it is none. */
export function parseRepositoryId(message: string): SignedStatement<RepositoryIdStatement> {
  return parseStatement(message, schema, 'the id of the repository');
}

/** Returns the id in a commit, signed or not; undefined if it is not an id. */
export async function readRepositoryId(git: GitRepository, oid: Oid): Promise<string | undefined> {
  try {
    return parseRepositoryId((await git.readCommit(oid)).message).statement.repository;
  } catch (error) {
    if (isSluiceError(error, 'Corrupt') || isSluiceError(error, 'NotFound')) return undefined;
    throw error;
  }
}
