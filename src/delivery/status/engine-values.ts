import { ellipsize } from '../../foundation/text/shorten.ts';
import type { Oid } from '../../git/git-repository.ts';

/** Characters of an engine's text in a message. */
const MAX_TEXT_CHARACTERS = 400;
const MAX_PATH_CHARACTERS = 4096;

/** Control characters, marks that reorder text, and halves of surrogate pairs. */
const UNPRINTABLE =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028\u2029\u202a-\u202e\u2060-\u206f\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
/** Engines quote addresses of repositories; some users put passwords into them. */
const USER_IN_ADDRESS = /:\/\/[^/\s@"']{1,512}@/g;

/** A text of an engine for messages: one line of printable characters, bounded, without the user part of addresses. */
export function engineText(text: string, max = MAX_TEXT_CHARACTERS): string {
  const plain = text
    // Bounded first: the text can have megabytes.
    .slice(0, max * 4)
    .replace(UNPRINTABLE, ' ')
    .replace(USER_IN_ADDRESS, '://')
    .replace(/ {2,}/g, ' ')
    .trim();
  return ellipsize(plain, max);
}

/** The commit in a text; undefined for everything else, such as the name of a branch. */
export function commitIn(text: string | undefined): Oid | undefined {
  return text !== undefined && /^[0-9a-f]{40}$/.test(text) ? text : undefined;
}

/** The commit in a revision of Flux: `main@sha1:<40 hex>`, `sha1:<40 hex>`, and the earlier `main/<40 hex>`. */
export function commitInFluxRevision(text: string | undefined): Oid | undefined {
  if (text === undefined || text.length > 1024) return undefined;
  const at = text.lastIndexOf('sha1:');
  if (at > 0 && text[at - 1] !== '@') return undefined;
  return commitIn(at >= 0 ? text.slice(at + 'sha1:'.length) : text.slice(text.lastIndexOf('/') + 1));
}

/** Milliseconds since the epoch; undefined for a text that is no RFC 3339 time. */
export function timeIn(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/.test(text)) return undefined;
  const time = Date.parse(text);
  return Number.isNaN(time) ? undefined : time;
}

/** The path of a source as of the root of its repository, empty for the root; undefined if it leaves the repository. */
export function sourcePath(path: string | undefined): string | undefined {
  if ((path ?? '').length > MAX_PATH_CHARACTERS) return undefined;
  const segments = (path ?? '').split('/').filter((segment) => segment !== '' && segment !== '.');
  return segments.includes('..') ? undefined : segments.join('/');
}

/** True if a folder equals another one, or is inside it; the empty folder is the root. */
export function isWithin(folder: string, other: string): boolean {
  return other === '' || folder === other || folder.startsWith(`${other}/`);
}

export function shortOf(commit: Oid): string {
  return commit.slice(0, 12);
}
