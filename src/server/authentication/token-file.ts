import { createHash, randomBytes } from 'node:crypto';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { type Clock, timestamp } from '../../foundation/time/clock.ts';
import { changePrivateFile } from '../certificates/private-file.ts';
import type { User } from './user.ts';

/**
 * A token file contains one token per line, as a hash: `sha256:<64 hex digits>,<user>,<uid>,"<group>,<group>",<expiry,
 * RFC 3339>`. uid, groups and expiry may be empty or omitted. Empty lines and lines that start with `#` are comments.
 */

/** A line of a token file. */
export interface TokenEntry {
  /** SHA-256 of the token, 64 hex digits in lower case. */
  readonly hash: string;
  readonly user: User;
  /** Milliseconds since the epoch; undefined is never. */
  readonly expires: number | undefined;
}

export interface TokenRequest {
  readonly user: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  /** Milliseconds; never expires if absent. */
  readonly lifetime?: number;
}

export const MAX_TOKEN_FILE_BYTES = 1024 * 1024;

const TOKEN_BYTES = 32;
/** Lets scanners for leaked secrets recognise a token. */
const TOKEN_PREFIX = 'sluice_';
const MAX_LINE_LENGTH = 4096;
const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;
// Characters that would break a line, or mislead its reader.
const UNFIT = /[\u0000-\u001f\u007f"]/;

export function hashOfToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/**
 * Reads a token file. An invalid line is ignored and reported to `onProblem` as `<path>:<line>: <what>`, without its text, which may be a
 * token.
 */
export function parseTokenFile(path: string, text: string, onProblem: (problem: string) => void): TokenEntry[] {
  const entries = new Map<string, TokenEntry>();
  for (const [index, line] of text.split('\n').entries()) {
    const parsed = parseLine(line.trim());
    if (parsed === undefined) continue;
    if (typeof parsed === 'string') onProblem(`${path}:${index + 1}: ${parsed}; the line is ignored`);
    else if (entries.has(parsed.hash))
      onProblem(`${path}:${index + 1}: the token is listed twice; the line is ignored`);
    else entries.set(parsed.hash, parsed);
  }
  return [...entries.values()];
}

/** Undefined for a comment, a text for what is wrong. */
function parseLine(line: string): TokenEntry | string | undefined {
  if (line === '' || line.startsWith('#')) return undefined;
  if (line.length > MAX_LINE_LENGTH) return `a line has at most ${MAX_LINE_LENGTH} characters`;
  const match = /^([^",]*),([^",]*)(?:,([^",]*)(?:,(?:"([^"]*)"|([^",]*))(?:,([^",]*))?)?)?$/.exec(line);
  if (match === null) return 'expected sha256:<hash>,<user>,<uid>,"<group>,<group>",<expiry>';
  const [, digest = '', name = '', uid = '', quoted, single = '', expiry = ''] = match.map((field) => field?.trim());
  const hash = /^sha256:([0-9a-f]{64})$/i.exec(digest)?.[1];
  if (hash === undefined)
    return 'the first field must be sha256: and 64 hex digits (the hash of a token, not the token)';
  if (name === '' || UNFIT.test(line.replaceAll('"', ''))) return 'the second field must be a user name';
  if (expiry !== '' && (!RFC_3339.test(expiry) || Number.isNaN(Date.parse(expiry))))
    return 'the expiry must be an RFC 3339 time such as 2030-01-31T00:00:00Z';
  const groups = (quoted ?? single).split(',').map((group) => group.trim());
  return {
    hash: hash.toLowerCase(),
    user: { name, ...(uid === '' ? {} : { uid }), groups: [...new Set(groups.filter((group) => group !== ''))] },
    expires: expiry === '' ? undefined : Date.parse(expiry),
  };
}

function formatEntry({ hash, user, expires }: TokenEntry): string {
  const expiry = expires === undefined ? '' : `,${timestamp(expires)}`;
  return `sha256:${hash},${user.name},${user.uid ?? ''},"${user.groups.join(',')}"${expiry}`;
}

/**
 * Creates a random token, adds its hash to a token file and returns the token, which is stored nowhere. Expired tokens are removed
 * from the file. InvalidInput for names that it cannot store, LimitExceeded if it is full.
 */
export async function addToken(path: string, request: TokenRequest, clock: Clock): Promise<string> {
  return changeTokens(path, request, clock, () => true);
}

/** As `addToken`, and removes all other tokens of that user. */
export async function replaceTokens(path: string, request: TokenRequest, clock: Clock): Promise<string> {
  return changeTokens(path, request, clock, (entry) => entry.user.name !== request.user);
}

async function changeTokens(
  path: string,
  request: TokenRequest,
  clock: Clock,
  keep: (entry: TokenEntry) => boolean,
): Promise<string> {
  const now = clock.now();
  const token = TOKEN_PREFIX + randomBytes(TOKEN_BYTES).toString('base64url');
  const added = formatEntry(entryOf(request, hashOfToken(token), now));
  await changePrivateFile(path, MAX_TOKEN_FILE_BYTES, (text = '') => {
    const kept = text.split('\n').filter((line) => {
      const entry = parseLine(line.trim());
      return typeof entry !== 'object' || ((entry.expires ?? Number.POSITIVE_INFINITY) > now && keep(entry));
    });
    const next = `${kept.join('\n').trimEnd()}\n${added}\n`.trimStart();
    if (Buffer.byteLength(next) > MAX_TOKEN_FILE_BYTES)
      throw new SluiceError('LimitExceeded', `${path} is full; remove lines of tokens that are not needed any more`);
    return next;
  });
  return token;
}

function entryOf({ user, uid = '', groups = [], lifetime }: TokenRequest, hash: string, now: number): TokenEntry {
  for (const text of [user, uid, ...groups])
    if (UNFIT.test(text) || text.includes(',') || text.trim() !== text)
      throw new SluiceError('InvalidInput', `${JSON.stringify(text)} cannot be a user name, uid or group`);
  if (user === '' || groups.includes('')) throw new SluiceError('InvalidInput', 'a user or group needs a name');
  const expires = lifetime === undefined ? undefined : now + lifetime;
  const entry = { hash, user: { name: user, ...(uid === '' ? {} : { uid }), groups }, expires };
  if (lifetime !== undefined && (!(lifetime > 0) || !(now + lifetime < Date.UTC(9999, 0))))
    throw new SluiceError('InvalidInput', 'the lifetime of a token must be positive and end before the year 9999');
  if (formatEntry(entry).length > MAX_LINE_LENGTH)
    throw new SluiceError(
      'InvalidInput',
      `user name and groups of a token must have at most ${MAX_LINE_LENGTH} characters`,
    );
  return entry;
}
