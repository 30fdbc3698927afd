import { hash } from 'node:crypto';
import { z } from 'zod';
import { messageOf, SluiceError } from '../../../foundation/sluice-error.ts';
import { canonicalJson } from '../../../foundation/text/canonical-json.ts';
import type { StatementScope } from '../ledger/trust-ledger.ts';

/** Version of the statements that this code writes and supports; statements of other versions are not trusted. */
export const STATEMENT_VERSION = 'sluice.dev/v1';

/** Characters of the payload of a statement that is written or read. The record of a Kptfile with the most conditions fits. */
export const MAX_STATEMENT_LENGTH = 1024 * 1024;
/** JSON values in it. Parsing a statement, validating and writing it again takes some 50 ms for so many. */
export const MAX_STATEMENT_VALUES = 20_000;
/** Lists and objects in one another. What is nested more deeply cannot be written again, so that it cannot have been signed. */
const MAX_STATEMENT_DEPTH = 200;

/** Trailer of the base64 signature; the payload is in front of it, see docs/trust.md. */
export const SIGNATURE_TRAILER = 'Sluice-Signature';

/** Anyone who may push can write a name, which is displayed: no control characters, no line separators. */
const name = z
  .string()
  .max(4096)
  .regex(/^[^\p{Cc}\p{Zl}\p{Zp}]*$/u);

/**
 * The common fields of every statement. All data that opens a gate, approves or delivers is in such a signed statement: the records
 * of drafts, publications, deletions, the list of adoptions, and the id of a repository. Keyed by repository id, path and
 * workspace, so that it can be replayed neither in another repository nor for another revision.
 */
export const statementHeadSchema = z.object({
  statement: z.literal(STATEMENT_VERSION),
  kind: z.enum(['record', 'publication', 'adoption', 'repository']),
  /** Random id of the repository; see repository-id.ts. */
  repository: name,
  /** Full path of the package in the repository. Empty for statements about the repository. */
  package: name,
  workspace: name,
  /** Grows by one with each statement on the same revision. */
  sequence: z.int().min(1),
  /** Digest of the statement before on the same revision; null for the first one. */
  previous: z.string().nullable(),
});

export type StatementHead = Readonly<z.infer<typeof statementHeadSchema>>;

/** A statement with its signature, as it was read from a commit message. */
export interface SignedStatement<Statement extends StatementHead = StatementHead> {
  readonly statement: Statement;
  /** Base64 of the SSH signature of `payloadOf(statement)`. */
  readonly signature: string;
}

/** What was signed, for the commit that will carry it: `payloadOf` the statement, and the signature of exactly this text. */
export interface SignedPayload {
  readonly payload: string;
  readonly signature: string;
}

/** JSON preserves every integer below this number of digits. The pattern also matches inside strings, which has no effect. */
const LONG_NUMBER = /\d{16}/;

/** The bytes that are signed: JSON in one line with sorted keys. */
export function payloadOf(statement: StatementHead): string {
  return canonicalJson(statement);
}

/**
 * What is signed has to be what a reader writes again after it parsed it. That is the same text unless it has integers with more digits
 * than a number keeps.
 */
export function readablePayload(statement: StatementHead): string {
  const payload = payloadOf(statement);
  return LONG_NUMBER.test(payload) ? payloadOf(JSON.parse(payload) as StatementHead) : payload;
}

/** The message of a commit that carries a statement: a subject, the payload in one line, the signature as a trailer. */
export function formatStatement(subject: string, { payload, signature }: SignedPayload): string {
  return `${subject}\n\n${payload}\n\n${SIGNATURE_TRAILER}: ${signature}\n`;
}

/** The unchanged payload and signature in such a message. */
export function splitMessage(message: string): SignedPayload {
  const start = message.indexOf('\n\n');
  const body = start === -1 ? '' : message.slice(start + 2);
  const [payload = '', signature = ''] = body.split(`\n\n${SIGNATURE_TRAILER}: `);
  return { payload, signature: signature.trim() };
}

/** Reads a statement from its commit message; `what` names it. Throws Corrupt if it is none. */
export function parseStatement<Statement extends StatementHead>(
  message: string,
  schema: z.ZodType,
  what: string,
): SignedStatement<Statement> {
  const { payload, signature } = splitMessage(message);
  const excess = statementExcess(payload);
  if (excess !== undefined) throw new SluiceError('Corrupt', `${what} is not readable: ${excess}`);
  try {
    const value: unknown = JSON.parse(payload);
    schema.parse(value);
    // The value as it was read: the signature covers fields that a later version added.
    return { statement: value as Statement, signature };
  } catch (error) {
    throw new SluiceError('Corrupt', `${what} is not readable: ${messageOf(error)}`, { cause: error });
  }
}

/** Identifies a statement in a chain: SHA-256 of its payload, in hex. */
export function statementDigest(payload: string): string {
  return hash('sha256', payload, 'hex');
}

/**
 * Returns why a payload is too large to be written or read; undefined if it is not. Linear, and much faster than parsing
 * it.
 */
export function statementExcess(payload: string): string | undefined {
  if (payload.length > MAX_STATEMENT_LENGTH)
    return `it has ${payload.length} characters, at most ${MAX_STATEMENT_LENGTH} are allowed`;
  // Almost every payload is short and has few brackets, which are counted much faster.
  if (payload.length <= MAX_STATEMENT_VALUES && hasAtMost(payload, ['{', '['], MAX_STATEMENT_DEPTH)) return undefined;
  let values = 1;
  let depth = 0;
  for (let at = 0; at < payload.length; at += 1) {
    const character = payload[at];
    if (character === '"') at = endOfString(payload, at);
    else if (character === '}' || character === ']') depth -= 1;
    else if (character === ',' || character === '{' || character === '[') {
      // What begins a value: commas, and opening brackets.
      values += 1;
      if (character !== ',') depth += 1;
      if (values > MAX_STATEMENT_VALUES) return `it has more than ${MAX_STATEMENT_VALUES} values, which are too many`;
      if (depth > MAX_STATEMENT_DEPTH)
        return `its values are nested in more than ${MAX_STATEMENT_DEPTH} levels, which are too many`;
    }
  }
  return undefined;
}

/** True if the characters occur at most `max` times together. */
function hasAtMost(text: string, characters: readonly string[], max: number): boolean {
  let count = 0;
  for (const character of characters)
    for (let at = text.indexOf(character); at !== -1 && count <= max; at = text.indexOf(character, at + 1)) count += 1;
  return count <= max;
}

/** Where the JSON string ends that begins at `start`. */
function endOfString(json: string, start: number): number {
  let at = start + 1;
  while (at < json.length && json[at] !== '"') at += json[at] === '\\' ? 2 : 1;
  return at;
}

export function scopeOf({ repository, package: packagePath, workspace }: StatementHead): StatementScope {
  return { repository, package: packagePath, workspace };
}
