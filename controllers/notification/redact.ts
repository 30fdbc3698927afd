import { cleanText } from '../../src/foundation/text/clean-text.ts';
import { ellipsize } from '../../src/foundation/text/shorten.ts';

const REMOVED = '[removed]';

/** Forms of credentials that hosts document. */
const CREDENTIALS: readonly RegExp[] = [
  /\b(?:gh[opsur]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,})/g,
  /\bgl(?:pat|dt|rt|cbt|ptt|ft|agent|soat|imt)-[A-Za-z0-9_.-]{16,}/g,
  /\bxox[a-z]-[A-Za-z0-9-]{10,}/g,
  /\bA(?:KIA|SIA)[A-Z0-9]{16}\b/g,
  /\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?/g,
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]*(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?/g,
  /\bhttps:\/\/hooks\.slack\.com\/[^\s"'<>]+/g,
];

/** What follows these words is a credential; the words stay. */
const AFTER_WORDS =
  /\b((?:authorization:\s*)?(?:bearer|basic)\s+|(?:access[_-]?token|token|secret|password|passwd|pwd|api[_-]?key|sig|signature)\s*[=:]\s*)(?!\[removed\])["']?[^\s"'&,;]{6,}["']?/gi;

/** Makes the text of an event safe for a receiver outside: printable, no credentials of known forms, at most `maxCharacters`. */
export function redact(text: string, maxCharacters: number): string {
  // The patterns need a bound of their input, since anyone who may create events chooses it.
  let safe = cleanText(text.slice(0, 4 * maxCharacters + 1024));
  for (const pattern of CREDENTIALS) safe = safe.replace(pattern, REMOVED);
  safe = safe.replace(AFTER_WORDS, `$1${REMOVED}`);
  return ellipsize(safe, maxCharacters);
}
