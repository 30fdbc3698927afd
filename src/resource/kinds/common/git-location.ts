import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { looksLikeSsh, readSshAddress } from '../../../git/network/ssh-address.ts';
import { clusterRules } from '../../schema/cluster-rule.ts';

/** Annotation of a Repository or DeliveryTarget: the Secret, of its namespace, with the key that its commits are signed with. */
export const SIGNING_ANNOTATION = 'sluice.dev/signing-secret';

const CONTROL = /[\u0000-\u001f\u007f]/;
/** A repository that Sluice keeps in its data folder. */
const HOSTED = /^sluice:\/\/\/[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.git$/;
const FORBIDDEN_IN_BRANCH = /[\s~^:?*[\\\u0000-\u001f\u007f]|\.\.|@\{|\/\/|\/\.|\.lock(\/|$)/;
const FORBIDDEN_SEGMENT = /^(\.{1,2}|\.git)$/i;

const ADDRESS_FORMS =
  'must be an https:// or ssh:// URL, <user>@<host>:<path>, an http:// URL of a host that the operator permits, a file:// URL, an absolute path, or sluice:///<name>.git';
const NO_CONTROL_CHARACTERS = 'must not contain control characters';
const NO_PASSWORD = 'must not contain a user or password; use secretRef';
const NO_QUERY = 'must not contain a query or a fragment';
const BRANCH_NAME = 'must be a name that Git takes as a branch';
const INNER_DIRECTORY = 'must stay inside the repository and outside of .git';

/** The parts of the checks below that CEL can express; they refuse nothing that the checks accept. */
const ADDRESS_RULES = clusterRules(
  [
    String.raw`self.matches(r'^(/|(?i:https?|ssh|file):|[^@/:]+@|sluice:///[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.git$)')`,
    ADDRESS_FORMS,
  ],
  [String.raw`!self.matches(r'[\x00-\x1f\x7f]')`, NO_CONTROL_CHARACTERS],
  [String.raw`!self.matches(r'^(?i:https?)://[^/?#\\]*@')`, NO_PASSWORD, 'FieldValueForbidden'],
  ["!self.matches(r'^(?i:https?|file):[^?#]*[?#][^#]')", NO_QUERY, 'FieldValueForbidden'],
);
const BRANCH_RULES = clusterRules([
  String.raw`!self.matches(r'^@?$|[\s~^:?*\[\\\x00-\x1f\x7f]|\.\.|@\{|//|/\.|\.lock(/|$)|^[-/.]|[/.]$')`,
  BRANCH_NAME,
]);
const DIRECTORY_RULES = clusterRules([
  String.raw`!self.matches(r'[\x00-\x1f\x7f\\]|(?i:(^|/)(\.\.|\.git)(/|$))')`,
  INNER_DIRECTORY,
]);

/** Returns the error in the address of a Git repository; undefined if it is valid. */
export function gitAddressProblem(address: string): string | undefined {
  if (CONTROL.test(address)) return NO_CONTROL_CHARACTERS;
  // A parser of URLs ignores blanks around them.
  if (address !== address.trim()) return ADDRESS_FORMS;
  if (address.startsWith('/')) return undefined;
  if (address.startsWith('sluice:'))
    return HOSTED.test(address) ? undefined : 'must be sluice:///<name>.git, with lower case letters, digits and "-"';
  if (looksLikeSsh(address)) {
    const ssh = readSshAddress(address);
    return 'problem' in ssh ? ssh.problem : undefined;
  }
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined) return ADDRESS_FORMS;
  // Also an empty name.
  if (url.username !== '' || url.password !== '' || /^https?:\/\/[^/?#\\]*@/i.test(address)) return NO_PASSWORD;
  if (url.search !== '' || url.hash !== '') return NO_QUERY;
  if (url.protocol === 'file:') return fileProblem(url);
  // The operator of the server decides whether a host may be used, and over http.
  return url.protocol === 'https:' || url.protocol === 'http:' ? undefined : ADDRESS_FORMS;
}

function fileProblem(url: URL): string | undefined {
  if (url.host !== '') return 'a file:// URL must not name a host';
  try {
    return CONTROL.test(fileURLToPath(url)) ? NO_CONTROL_CHARACTERS : undefined;
  } catch {
    return 'must be a file:// URL with a properly encoded path';
  }
}

/** True for a name that Git takes as a branch (after git-check-ref-format). */
export function isBranchName(name: string): boolean {
  return name !== '' && name !== '@' && !FORBIDDEN_IN_BRANCH.test(name) && !/^[-/.]|[/.]$/.test(name);
}

/**
 * The one form of a directory inside a repository: `/` for its root, else segments joined by `/` without one at the
 * ends. Undefined if it leaves the repository or names what Git keeps for itself.
 */
export function normalizeDirectory(directory: string): string | undefined {
  if (/[\u0000-\u001f\u007f\\]/.test(directory)) return undefined;
  const segments = directory.split('/').filter((segment) => segment !== '' && segment !== '.');
  if (segments.some((segment) => FORBIDDEN_SEGMENT.test(segment))) return undefined;
  return segments.length === 0 ? '/' : segments.join('/');
}

export const gitAddressSchema = z
  .string()
  .min(1, 'must not be empty')
  .max(2048)
  .superRefine((address, context) => {
    const message = address === '' ? undefined : gitAddressProblem(address);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  })
  .meta(ADDRESS_RULES)
  .describe(
    'URL of the Git repository: https://, ssh://, <user>@<host>:<path>, http:// to a host that the operator permits, file://, an absolute path, or sluice:///<name>.git for a repository in the data folder of Sluice.',
  );

export const branchSchema = z
  .string()
  .max(1024)
  .refine(isBranchName, BRANCH_NAME)
  .meta(BRANCH_RULES)
  .describe('Name of a branch.');

export const directorySchema = z
  .string()
  .max(4096)
  .refine((text) => normalizeDirectory(text) !== undefined, INNER_DIRECTORY)
  .meta(DIRECTORY_RULES)
  .transform((text) => normalizeDirectory(text) ?? text)
  .describe('Folder in the repository; / is the root.');

/** Clients written in Go send an empty name for none. */
export const secretRefSchema = z
  .object({ name: z.string().describe('Name of a Secret in the same namespace; empty for none.') })
  .describe(
    'Reference to a Secret with credentials: username and password (or token); for ssh identity and known_hosts; ca.crt for a private certificate authority.',
  );
