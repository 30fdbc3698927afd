/** The address of a repository over ssh. */
export interface SshAddress {
  /** Normalized: `ssh://user@host[:port]/path`, whichever form was read. */
  readonly url: string;
  readonly user: string;
  /** Lower case; an IPv6 address without brackets. */
  readonly host: string;
  readonly port: number;
  /** As the server's command gets it: absolute, or `~/…` and `~user/…` for a home folder there. */
  readonly path: string;
}

const DEFAULT_USER = 'git';
const DEFAULT_PORT = 22;
const MAX_ADDRESS_CHARACTERS = 2048;

const URL_FORM = /^ssh:\/\/(?:([^@/]*)@)?(\[[^\]/]*\]|[^:/[\]]*)(?::([^/]*))?(\/.*)$/i;
/** The user is required: `host:path` alone may as well be a mistyped path or another kind of address. */
const SHORT_FORM = /^([^@/:]+)@(\[[^\]/]*\]|[^:/[\]]+):(?!\/\/)(.+)$/;

// Neither may begin like an option of a program.
const USER = /^[A-Za-z0-9_][A-Za-z0-9._+-]{0,63}$/;
const HOST = /^[a-z0-9](?:[a-z0-9._-]{0,251}[a-z0-9])?$/;
const IPV6 = /^\[[0-9a-f:.]{2,45}\]$/;
/** Letters and digits of all scripts, and no character with a meaning for a shell inside or outside of single quotes. */
const PATH = /^[/~][\p{L}\p{M}\p{N}._~/+@=,:()% -]*$/u;

/** True if the text has the syntax of an ssh address, even if a part such as the port is invalid. */
export function looksLikeSsh(text: string): boolean {
  return /^ssh:/i.test(text) || SHORT_FORM.test(text);
}

/**
 * Reads `ssh://[user@]host[:port]/path` and `user@host:path`; the path of the second form is absolute, like that of the first. The
 * default user is `git`. For other texts it returns the error as the end of a sentence that begins with the address.
 */
export function readSshAddress(text: string): SshAddress | { readonly problem: string } {
  if (text.length > MAX_ADDRESS_CHARACTERS) return { problem: 'is too long' };
  const [, givenUser, givenHost = '', givenPort, urlPath] = URL_FORM.exec(text) ?? [];
  const [, shortUser, shortHost = '', shortPath] = urlPath === undefined ? (SHORT_FORM.exec(text) ?? []) : [];
  const user = givenUser ?? shortUser ?? DEFAULT_USER;
  const host = (givenHost || shortHost).toLowerCase();
  const port = portOf(givenPort);
  const path = urlPath === undefined ? shortPath : decoded(urlPath);
  if (user.includes(':'))
    return { problem: 'must not contain a password; ssh uses a key, from the Secret in secretRef' };
  if (!USER.test(user)) return { problem: 'must name a user of letters, digits and ._+-' };
  if (!HOST.test(host) && !IPV6.test(host))
    return { problem: 'must name a host, such as ssh://git@git.example.com/a.git' };
  if (port === undefined) return { problem: 'must have a port from 1 to 65535, or none' };
  const segments = path?.split('/').filter((segment) => segment !== '' && segment !== '.') ?? [];
  const serverPath = segments[0]?.startsWith('~') === true ? segments.join('/') : `/${segments.join('/')}`;
  if (segments.length === 0 || segments.includes('..') || !PATH.test(serverPath))
    return { problem: 'must have a path of letters, digits, blanks and ._~/+@=,:()%-, without ".."' };
  const authority = `${user}@${host}${port === DEFAULT_PORT ? '' : `:${port}`}`;
  const url = `ssh://${authority}/${segments.map(encodeSegment).join('/')}`;
  return { url, user, host: host.replace(/^\[|\]$/g, ''), port, path: serverPath };
}

function portOf(text: string | undefined): number | undefined {
  if (text === undefined) return DEFAULT_PORT;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  return port >= 1 && port <= 65_535 ? port : undefined;
}

/** Undefined if it is not properly encoded. */
function decoded(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    // URIError: the caller reports the rules for paths.
    return undefined;
  }
}

/** Encodes only characters with a meaning in a URL: `~` and `@` stay readable. */
function encodeSegment(segment: string): string {
  return encodeURI(segment).replaceAll('#', '%23').replaceAll('?', '%3F');
}
