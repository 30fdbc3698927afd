import { LruCache } from '../../../foundation/lru-cache.ts';
import { isSluiceError, messageOf } from '../../../foundation/sluice-error.ts';
import type { GitRepository, Oid } from '../../../git/git-repository.ts';
import { type AllowedSigner, allowsSigning, parseAllowedSigners } from '../../../git/signing/allowed-signers.ts';
import { signedCommit } from '../../../git/signing/signed-commit.ts';
import { parseSshSignature, type SshSignature, verifySshSignature } from '../../../git/signing/ssh-signature.ts';

/** Annotation of a Repository: the ConfigMap in its namespace that lists the keys of users. */
export const ALLOWED_SIGNERS_ANNOTATION = 'sluice.dev/allowed-signers';
/** The key of that ConfigMap. */
export const ALLOWED_SIGNERS_KEY = 'allowed_signers';
/** The SSH signature namespace of Git commits. */
const GIT_NAMESPACE = 'git';
/** Names that Sluice or a cluster gives to system actors. */
const RESERVED = /^(?:push$|(?:controller|resolver|system|group):)/;
const MAX_KNOWN_COMMITS = 2048;
/** Reading a line takes microseconds of the process that also serves the API, so a list is limited. */
const MAX_LINES = 10_000;

/** The users with listed keys, for the attribution of pushes. */
export interface People {
  readonly signers: readonly ListedSigner[];
  /** Problems of ignored lines, one sentence each. */
  readonly problems: readonly string[];
}

interface ListedSigner extends AllowedSigner {
  readonly name: string;
}

export const NO_PEOPLE: People = { signers: [], problems: [] };

/**
 * Reads an allowed-signers file. A principal is the name of one user, so lines with patterns or several principals identify no user,
 * and neither do names that Sluice uses itself. A file that cannot be read identifies no users at all.
 */
export function peopleOf(text: string): People {
  const lineCount = text.split('\n').length;
  if (lineCount > MAX_LINES) {
    const problem = `it has ${lineCount} lines, of which none counts: ${MAX_LINES} are allowed; remove keys that are not used`;
    return { signers: [], problems: [problem] };
  }
  let lines: AllowedSigner[];
  try {
    lines = parseAllowedSigners(text);
  } catch (error) {
    if (!isSluiceError(error, 'InvalidInput')) throw error;
    return { signers: [], problems: [messageOf(error)] };
  }
  const signers: ListedSigner[] = [];
  const problems: string[] = [];
  const byKey = new Map<string, ListedSigner>();
  for (const line of lines) {
    const { principals: name, publicKey } = line;
    const blob = publicKey.blob.toString('base64');
    const known = byKey.get(blob);
    const problem = personNameProblem(name);
    if (problem !== undefined) problems.push(`line ${line.line}${problem}`);
    else if (known !== undefined && known.name !== name)
      problems.push(`line ${line.line}: the key belongs to ${known.name} already (line ${known.line})`);
    else {
      const signer = { ...line, name };
      signers.push(signer);
      byKey.set(blob, known ?? signer);
    }
  }
  return { signers, problems };
}

/** Returns the users whose keys both lists have on equal lines, with the problems of the first list. */
export function peopleOfBoth(own: People, other: People): People {
  const others = new Set(other.signers.map(lineKey));
  return { ...own, signers: own.signers.filter((signer) => others.has(lineKey(signer))) };
}

/** Equal for lines that differ in their numbers alone. */
function lineKey({ name, publicKey, namespaces, validAfter, validBefore }: ListedSigner): string {
  return JSON.stringify([publicKey.blob.toString('base64'), name, namespaces, validAfter, validBefore]);
}

/** Returns why a text cannot be the name of a user, to follow `line 3`; undefined if it can. */
export function personNameProblem(name: string): string | undefined {
  if (/[,*?!\s\p{C}]/u.test(name)) return ' does not name exactly one user';
  return RESERVED.test(name) ? `: ${name} cannot be the name of a user` : undefined;
}

/** Signers of commits, by list: a commit is evaluated repeatedly until its record is written. */
const known = new WeakMap<
  People,
  LruCache<Oid, { readonly name: string; readonly signer: ListedSigner } | undefined>
>();

/**
 * Returns the user whose listed key signed a commit; undefined for other keys, and for OpenPGP signatures. The key must be valid
 * both at the commit's date and now (milliseconds since the epoch), since a thief of an expired key could backdate a commit.
 */
export async function signerOf(
  git: Pick<GitRepository, 'readObjects'>,
  commit: { readonly oid: Oid; readonly time: number },
  people: People,
  now: number,
): Promise<string | undefined> {
  if (people.signers.length === 0) return undefined;
  const memo = known.get(people) ?? new LruCache({ maxEntries: MAX_KNOWN_COMMITS });
  known.set(people, memo);
  let found = memo.get(commit.oid);
  if (!memo.has(commit.oid)) {
    found = await findSigner(git, commit.oid, people);
    memo.set(commit.oid, found);
  }
  if (found === undefined) return undefined;
  const valid = [commit.time, now].every((at) => allowsSigning(found.signer, GIT_NAMESPACE, at));
  return valid ? found.name : undefined;
}

async function findSigner(git: Pick<GitRepository, 'readObjects'>, oid: Oid, { signers }: People) {
  const [object] = await git.readObjects([oid]);
  const signed = object?.type === 'commit' ? signedCommit(object.data) : undefined;
  const signature = signed === undefined ? undefined : readSignature(signed.signature);
  if (signed === undefined || signature === undefined) return undefined;
  const signer = signers.find(({ publicKey }) => publicKey.blob.equals(signature.publicKey.blob));
  if (signer === undefined || !(await verifySshSignature(signature, signed.payload, GIT_NAMESPACE))) return undefined;
  return { name: signer.name, signer };
}

/** Undefined for what is no SSH signature, such as one of OpenPGP, or one that does not count. */
function readSignature(text: string): SshSignature | undefined {
  try {
    return parseSshSignature(text);
  } catch (error) {
    if (isSluiceError(error, 'InvalidInput')) return undefined;
    throw error;
  }
}
