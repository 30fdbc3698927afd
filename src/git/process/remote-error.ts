import { type ErrorCode, SluiceError } from '../../foundation/sluice-error.ts';
import { cleanText } from '../network/remote-url.ts';
import { sshError } from './ssh-error.ts';

/** What git says (LC_ALL=C) when a remote cannot be used, and what it means. The first match counts. */
const MEANINGS: readonly (readonly [RegExp, ErrorCode, string])[] = [
  [/could not read (?:Username|Password)|terminal prompts disabled/, 'Refused', 'asks for credentials: give it some'],
  [/Authentication failed|returned error: 401/, 'Refused', 'does not accept the credentials: renew them'],
  [/returned error: 403|HTTP 403|access denied|not permitted/i, 'Refused', 'does not allow this'],
  [/returned error: 30\d|redirect/, 'Refused', 'redirects elsewhere: give its new address'],
  [/couldn't find remote ref/, 'NotFound', 'lacks a ref that was asked for'],
  [/not found|does not appear to be a git repository|returned error: 404/, 'NotFound', 'has no such repository'],
  [/does not support --atomic push/, 'Unsupported', 'cannot push all or nothing, so that nothing is pushed to it'],
  [/does not support push options/, 'Unsupported', 'takes no options with a push: give none for it'],
  [
    /certificate verif|certificate problem|verification failed.*certificate|certificate.*(?:not trusted|unknown)/i,
    'Refused',
    'has a certificate that is not trusted: put that of its authority into ca.crt of the Secret',
  ],
  [/dubious ownership/, 'Refused', 'belongs to another user of this machine'],
  [/transport '\w+' not allowed/, 'Refused', 'leads to a transport that is not allowed'],
];

/** Lines of git that hold its own words and those of curl, and nothing that a server sent. */
const OWN_WORDS =
  /^(?:fatal|error): (?:unable to access '[^']*': .*|could not read (?:Username|Password).*|Authentication failed.*|repository '[^']*' not found|transport '\w+' not allowed|the receiving end does not support .*|couldn't find remote ref .*|RPC failed; HTTP \d+.*)$/gm;

/**
 * The error for a call that git ended with `stderr`. Of a server over HTTP only what git and curl say themselves follows: the rest may
 * be the answer of a service that was not meant to be shown to the caller.
 */
export function remoteError(url: string, stderr: string, consequence = ''): SluiceError {
  const ssh = sshError(url, stderr);
  if (ssh !== undefined) return ssh;
  const isHttp = /^https?:/i.test(url);
  const said = cleanText(isHttp ? (stderr.match(OWN_WORDS) ?? []).join('\n') : stderr);
  const [, code, meaning] = MEANINGS.find(([pattern]) => pattern.test(cleanText(stderr))) ?? [
    undefined,
    'Unavailable' as const,
    'cannot be used now',
  ];
  const hidden = isHttp ? 'nothing that may be shown' : 'nothing';
  return new SluiceError(code, `remote ${url} ${meaning}${consequence}. Git says: ${said || hidden}`);
}
