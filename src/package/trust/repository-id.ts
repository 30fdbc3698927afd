import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { GitRepository, Oid } from '../../git/git-repository.ts';
import {
  payloadOf,
  SIGNATURE_TRAILER,
  type SignedStatement,
  type StatementHead,
  statementHeadSchema,
} from './statement.ts';

/**
 * A repository has a random id, made once and kept in Git, which every statement names: a statement that is copied to another
 * repository means nothing there. The id is itself a signed statement, on `refs/sluice/repository`.
 */
export interface RepositoryIdStatement extends StatementHead {
  readonly kind: 'repository';
}

const schema = statementHeadSchema.extend({ kind: z.literal('repository') });

export function newRepositoryId(): string {
  return randomUUID();
}

/** Scope of the statements about the repository itself. */
export const REPOSITORY_SCOPE = { package: '', workspace: 'repository' } as const;

export function formatRepositoryId(
  subject: string,
  { statement, signature }: SignedStatement<RepositoryIdStatement>,
): string {
  return `${subject}\n\n${payloadOf(statement)}\n\n${SIGNATURE_TRAILER}: ${signature}\n`;
}

/** Reads the id from its commit message. Throws Corrupt if it is none. */
export function parseRepositoryId(message: string): SignedStatement<RepositoryIdStatement> {
  const [payload = '', signature = ''] = message.slice(message.indexOf('\n\n') + 2).split(`\n\n${SIGNATURE_TRAILER}: `);
  try {
    const value: unknown = JSON.parse(payload);
    schema.parse(value);
    return { statement: value as RepositoryIdStatement, signature: signature.trim() };
  } catch (error) {
    throw new SluiceError('Corrupt', `the id of the repository is not readable: ${messageOf(error)}`, { cause: error });
  }
}

/** The id that a commit names, whoever wrote it; undefined for something that is no id. */
export async function readRepositoryId(git: GitRepository, oid: Oid): Promise<string | undefined> {
  try {
    return parseRepositoryId((await git.readCommit(oid)).message).statement.repository;
  } catch (error) {
    if (isSluiceError(error, 'Corrupt') || isSluiceError(error, 'NotFound')) return undefined;
    throw error;
  }
}
