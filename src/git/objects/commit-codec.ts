import { SluiceError } from '../../foundation/sluice-error.ts';
import { trimEndOf } from '../../foundation/text/trim-characters.ts';
import type { Commit, NewCommit, Oid, Signature } from '../git-repository.ts';
import { checkOid, isOid } from './object-id.ts';

/**
 * Encodes a commit object without a signature, which is what a signer signs. Throws InvalidInput for values that Git
 * cannot store.
 */
export function encodeCommit(commit: NewCommit): Buffer {
  const lines = [`tree ${checkOid(commit.tree, 'tree of a commit')}`];
  for (const parent of commit.parents) lines.push(`parent ${checkOid(parent, 'parent of a commit')}`);
  lines.push(`author ${encodeSignature(commit.author, 'author of a commit')}`);
  lines.push(`committer ${encodeSignature(commit.committer, 'committer of a commit')}`);
  if (commit.message.includes('\0'))
    throw new SluiceError('InvalidInput', 'a commit message must not contain a NUL character');
  return Buffer.from(`${lines.join('\n')}\n\n${commit.message}`, 'utf8');
}

/** The commit with the signer's text as its `gpgsig` header, the last one, folded by a space in front of each line. */
export function embedSignature(payload: Buffer, signature: string): Buffer {
  const text = checkSignature(signature);
  const headersEnd = payload.indexOf('\n\n') + 1;
  const header = Buffer.from(`gpgsig ${text.replaceAll('\n', '\n ')}\n`, 'utf8');
  return Buffer.concat([payload.subarray(0, headersEnd), header, payload.subarray(headersEnd)]);
}

/** Returns the output of a signer without trailing line breaks. Throws InvalidInput if it cannot be a signature. */
export function checkSignature(signature: string): string {
  const text = trimEndOf(signature, '\n');
  if (text === '' || /[\0\r]/.test(text))
    throw new SluiceError('InvalidInput', 'the signer returned no signature, or one with control characters');
  return text;
}

/** Signatures, and the tags of a merge, are in headers. */
const MAX_HEADER_BYTES = 1024 * 1024;
const OID_DIGITS = 40;

/**
 * Parses a commit object. Throws Corrupt unless it names a tree and its parents, and for headers of more than a mebibyte; malformed
 * names and dates are tolerated (any user may push them), and unknown headers are skipped.
 */
export function parseCommit(data: Buffer, oid: Oid): Commit {
  const end = data.indexOf('\n\n');
  const headerBytes = end < 0 ? data.length : end;
  if (headerBytes > MAX_HEADER_BYTES)
    throw new SluiceError(
      'Corrupt',
      `commit ${oid} is damaged: its headers have ${headerBytes} bytes, at most ${MAX_HEADER_BYTES} are read`,
    );
  const headers = parseHeaders(data.subarray(0, headerBytes));
  const values = (name: HeaderName) => headers.get(name) ?? [];
  const bytes = (name: HeaderName) => values(name).map((value) => Buffer.from(value, 'latin1'))[0];
  const decode = decoderFor(values('encoding')[0]);
  const [tree, ...moreTrees] = values('tree');
  const parents = values('parent');
  if (tree === undefined || moreTrees.length > 0 || ![tree, ...parents].every(isOid))
    throw new SluiceError('Corrupt', `commit ${oid} is damaged: its tree or a parent is no object id`);
  return {
    oid,
    tree,
    parents,
    author: parseSignature(bytes('author'), decode),
    committer: parseSignature(bytes('committer'), decode),
    message: end < 0 ? '' : decode(data.subarray(end + 2)),
    signature: bytes('gpgsig')?.toString('utf8'),
  };
}

/** The tree and the parents of a commit, however long its other headers are; undefined if it does not begin with a tree. */
export function linksOfCommit(data: Buffer): { readonly tree: Oid; readonly parents: readonly Oid[] } | undefined {
  const line = (header: string, at: number) => {
    const end = at + header.length + OID_DIGITS;
    const text = data.toString('latin1', at, end + 1);
    const oid = text.slice(header.length, -1);
    return text.startsWith(header) && text.endsWith('\n') && isOid(oid) ? oid : undefined;
  };
  const tree = line('tree ', 0);
  if (tree === undefined) return undefined;
  const parents: Oid[] = [];
  let at = 'tree '.length + OID_DIGITS + 1;
  for (let parent = line('parent ', at); parent !== undefined; parent = line('parent ', at)) {
    parents.push(parent);
    at += 'parent '.length + OID_DIGITS + 1;
  }
  return { tree, parents };
}

const READ_HEADERS = ['tree', 'parent', 'author', 'committer', 'encoding', 'gpgsig'] as const;
type HeaderName = (typeof READ_HEADERS)[number];

/** The unfolded values of the headers that are read, by name, one character a byte. Takes linear time and skips other headers. */
function parseHeaders(block: Buffer): Map<HeaderName, string[]> {
  const headers = new Map<HeaderName, string[]>();
  // Byte for byte, since the encoding is not known before the headers are read.
  const text = block.toString('latin1');
  for (let start = 0; start < text.length; ) {
    const end = endOfHeader(text, start);
    const name = READ_HEADERS.find((known) => text.startsWith(`${known} `, start));
    if (name !== undefined) {
      const value = text.slice(start + name.length + 1, end).replaceAll('\n ', '\n');
      const known = headers.get(name);
      if (known === undefined) headers.set(name, [value]);
      else known.push(value);
    }
    start = end + 1;
  }
  return headers;
}

/** Returns the end of the header that begins at `start`, including its folded lines. */
function endOfHeader(text: string, start: number): number {
  for (let from = start; ; ) {
    const end = text.indexOf('\n', from);
    if (end === -1) return text.length;
    if (text[end + 1] !== ' ') return end;
    from = end + 1;
  }
}

function decoderFor(encoding: string | undefined): (data: Buffer) => string {
  if (encoding !== undefined) {
    try {
      const decoder = new TextDecoder(encoding);
      return (data) => decoder.decode(data);
    } catch {
      // An unknown encoding: UTF-8 shows most of the text, and no decision depends on the text.
    }
  }
  return (data) => data.toString('utf8');
}

/** Formats a person and a time as in a header of a commit or tag. `role` names the header in messages. */
export function encodeSignature(person: Signature, role: string): string {
  const { name, email, time } = person;
  if (name.trim() === '' || /[<>\n\0]/.test(name) || /[<>\s\0]/.test(email))
    throw new SluiceError(
      'InvalidInput',
      `${role}: name and e-mail must not contain angle brackets or line breaks, and the name must not be empty`,
    );
  const seconds = Math.floor(time / 1000);
  if (!Number.isSafeInteger(seconds) || seconds < 0)
    throw new SluiceError('InvalidInput', `${role}: ${time} is not a time after 1970 in milliseconds`);
  return `${name.trim()} <${email}> ${seconds} +0000`;
}

function parseSignature(value: Buffer | undefined, decode: (data: Buffer) => string): Signature {
  const text = value === undefined ? '' : decode(value);
  const open = text.indexOf('<');
  const close = text.lastIndexOf('>');
  if (open < 0 || close < open) return { name: text.trim(), email: '', time: 0 };
  const seconds = Number(/^ *(\d{1,12})(?: |$)/.exec(text.slice(close + 1))?.[1] ?? 0);
  return { name: text.slice(0, open).trim(), email: text.slice(open + 1, close), time: seconds * 1000 };
}
