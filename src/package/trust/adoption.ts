import { hash } from 'node:crypto';
import { z } from 'zod';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { GitRepository, Oid } from '../../git/git-repository.ts';
import type { RepositoryTrust, StatementFact } from './repository-trust.ts';
import {
  parseStatement,
  payloadOf,
  type SignedStatement,
  type StatementHead,
  statementDigest,
  statementHeadSchema,
} from './statement/statement.ts';

/**
 * The adoption by an operator: tags that count without a trusted statement about their publication. The statement contains the digest
 * of the list; the list itself is a file in the tree of the commit, one `<object id> <ref>` per line. Each list includes all previous
 * ones.
 */
export interface AdoptionStatement extends StatementHead {
  readonly kind: 'adoption';
  /** SHA-256 of the list, in hex. */
  readonly list: string;
  /** The main branch that was accepted with it. */
  readonly main: string | null;
}

/** Refs with the object ids that were adopted. */
export type AdoptionList = ReadonlyMap<string, Oid>;

/** The content of an adoption ref, with its signature checked. */
export interface Adoption {
  /** Undefined if it is not an adoption. */
  readonly fact: StatementFact | undefined;
  /** Empty unless a key that is or was trusted signed exactly this list. */
  readonly list: AdoptionList;
}

/** Scope of the statements about adoptions. */
export const ADOPTION_SCOPE = { package: '', workspace: 'adopted' } as const;
/** Name of the list in the commit's tree. */
export const ADOPTION_FILE = 'adopted';

const schema = statementHeadSchema.extend({
  kind: z.literal('adoption'),
  list: z.string(),
  main: z.string().nullable(),
});
const NOTHING: AdoptionList = new Map();

/** The list as a file, sorted by ref. */
export function formatAdoptionList(list: AdoptionList): string {
  const refs = [...list].sort(([a], [b]) => (a < b ? -1 : 1));
  return refs.map(([ref, oid]) => `${oid} ${ref}\n`).join('');
}

export function listDigest(text: string | Buffer): string {
  return hash('sha256', text, 'hex');
}

/** Reads an adoption from its commit message. Throws Corrupt if it is none. */
export function parseAdoption(message: string): SignedStatement<AdoptionStatement> {
  return parseStatement(message, schema, 'the adoption');
}

/** Reads what the adoption ref points to. Never throws for what a push put there. The list is read only if its signature is good. */
export async function readAdoption(git: GitRepository, oid: Oid, trust: RepositoryTrust): Promise<Adoption> {
  try {
    const commit = await git.readCommit(oid);
    const signed = parseAdoption(commit.message);
    const signer = await trust.signerOf(signed);
    const { statement } = signed;
    const fact = { head: statement, digest: statementDigest(payloadOf(statement)), signer };
    if (trust.distrustOf(fact, ADOPTION_SCOPE) !== undefined) return { fact, list: NOTHING };
    const [blob] = await git.readObjects([`${commit.tree}:${ADOPTION_FILE}`]);
    if (blob?.type !== 'blob' || listDigest(blob.data) !== statement.list) return { fact: undefined, list: NOTHING };
    return { fact, list: parseList(blob.data.toString('utf8')) };
  } catch (error) {
    const isContent = isSluiceError(error, 'Corrupt') || isSluiceError(error, 'NotFound');
    if (isContent || isSluiceError(error, 'LimitExceeded')) return { fact: undefined, list: NOTHING };
    throw error;
  }
}

function parseList(text: string): AdoptionList {
  const list = new Map<string, Oid>();
  for (const line of text.split('\n')) {
    const space = line.indexOf(' ');
    if (space > 0) list.set(line.slice(space + 1), line.slice(0, space));
  }
  return list;
}
