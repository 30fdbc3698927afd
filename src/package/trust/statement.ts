import { hash } from 'node:crypto';
import { z } from 'zod';
import { canonicalJson } from '../canonical-json.ts';
import type { StatementScope } from './trust-ledger.ts';

/** Version of the statements that this code writes and understands; what names another one is not trusted. */
export const STATEMENT_VERSION = 'sluice.dev/v1';

/** Trailer of the base64 signature; the payload is in front of it, see docs/trust.md. */
export const SIGNATURE_TRAILER = 'Sluice-Signature';

/**
 * What every statement begins with. Whatever opens a gate, approves or delivers is such a statement, signed: the records of drafts,
 * publications, deletions, the list of what was adopted, and the id of a repository. Keyed by repository id, path and workspace, so
 * that it can be replayed neither in another repository nor for another revision.
 */
export const statementHeadSchema = z.object({
  statement: z.literal(STATEMENT_VERSION),
  kind: z.enum(['record', 'publication', 'adoption', 'repository']),
  /** Random id of the repository; see repository-id.ts. */
  repository: z.string(),
  /** Full path of the package in the repository. Empty for statements about the repository. */
  package: z.string(),
  workspace: z.string(),
  /** Grows by one with each statement on the same revision. */
  sequence: z.int().min(1),
  /** Digest of the statement before on the same revision; null for the first one. */
  previous: z.string().nullable(),
});

export type StatementHead = Readonly<z.infer<typeof statementHeadSchema>>;

/** A statement with its signature, as it stands in a commit message. */
export interface SignedStatement<Statement extends StatementHead = StatementHead> {
  readonly statement: Statement;
  /** Base64 of the SSH signature of `payloadOf(statement)`. */
  readonly signature: string;
}

/** The bytes that are signed: JSON in one line with sorted keys. */
export function payloadOf(statement: StatementHead): string {
  return canonicalJson(statement);
}

/** Identifies a statement in a chain: SHA-256 of its payload, in hex. */
export function statementDigest(payload: string): string {
  return hash('sha256', payload, 'hex');
}

export function scopeOf({ repository, package: packagePath, workspace }: StatementHead): StatementScope {
  return { repository, package: packagePath, workspace };
}
