import { type ErrorCode, SluiceError } from '../../foundation/sluice-error.ts';
import { cleanText } from '../../foundation/text/clean-text.ts';
import type { GitCredentials } from '../git-repository.ts';
import { credentialsMeaning, deniedMeaning } from '../network/refused-credentials.ts';
import { sshError } from './ssh-error.ts';

/** A meaning, which can depend on the credentials of the request. */
type Meaning = string | ((credentials: GitCredentials | undefined) => string);

/** Messages of git (LC_ALL=C) when a remote cannot be used, and what they mean. The first match counts. */
const MEANINGS: readonly (readonly [RegExp, ErrorCode, Meaning])[] = [
  [
    /could not read (?:Username|Password)|terminal prompts disabled|Authentication failed|returned error: 401/,
    'Refused',
    credentialsMeaning,
  ],
  [/returned error: 403|HTTP 403|access denied|not permitted/i, 'Refused', deniedMeaning],
  [/returned error: 30\d|redirect/, 'Refused', 'redirects elsewhere: use its new address'],
  [/couldn't find remote ref/, 'NotFound', 'lacks a requested ref'],
  [/not found|does not appear to be a git repository|returned error: 404/, 'NotFound', 'has no such repository'],
  [/does not support --atomic push/, 'Unsupported', 'does not support atomic pushes, so that nothing was pushed'],
  [/does not support push options/, 'Unsupported', 'does not accept push options: remove them'],
  [
    /certificate verif|certificate problem|verification failed.*certificate|certificate.*(?:not trusted|unknown)/i,
    'Refused',
    'has a certificate that is not trusted: put that of its authority into ca.crt of the Secret',
  ],
  [/dubious ownership/, 'Refused', 'belongs to another user of this machine'],
  [/transport '\w+' not allowed/, 'Refused', 'leads to a transport that is not allowed'],
];

/** Lines of git that contain only its own messages and those of curl, and no text of a server. */
const OWN_MESSAGES =
  /^(?:fatal|error): (?:unable to access '[^']*': .*|could not read (?:Username|Password).*|Authentication failed.*|repository '[^']*' not found|transport '\w+' not allowed|the receiving end does not support .*|couldn't find remote ref .*|RPC failed; HTTP \d+.*)$/gm;

/**
 * Returns the error for a call that failed with `stderr`, and had these credentials for HTTP. For HTTP it quotes only messages of git and curl themselves: other text may
 * come from an internal service and must not be shown to the caller.
 */
export function remoteError(url: string, stderr: string, credentials?: GitCredentials): SluiceError {
  const ssh = sshError(url, stderr);
  if (ssh !== undefined) return ssh;
  const isHttp = /^https?:/i.test(url);
  const output = cleanText(isHttp ? (stderr.match(OWN_MESSAGES) ?? []).join('\n') : stderr);
  const [, code, meaning] = MEANINGS.find(([pattern]) => pattern.test(cleanText(stderr))) ?? [
    undefined,
    'Unavailable' as const,
    'is unavailable',
  ];
  const hidden = isHttp ? '(not shown)' : '(no output)';
  const text = typeof meaning === 'string' ? meaning : meaning(credentials);
  return new SluiceError(code, `remote ${url} ${text}. Output of git: ${output || hidden}`);
}
