import { hash } from 'node:crypto';
import { SluiceError } from '../../../foundation/sluice-error.ts';

/**
 * The permanent identity of a package revision: its repository, the package's path below the repository's directory, its workspace.
 */
export interface RevisionKey {
  readonly repository: string;
  /** `/`-separated path of the package below the repository's directory; the last segment is the package's own name. */
  readonly package: string;
  readonly workspace: string;
}

export const DEFAULT_NAMESPACE = 'default';

/** Porch's UUID namespace for package revisions; its clients rely on the resulting ids. */
const UID_NAMESPACE = Buffer.from('aac71d915c67456f8fd2902ef6da820e', 'hex');

const DNS_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

/** The end of a name that is read as one workspace although it has dots; Porch's rule. */
const DOTTED_WORKSPACE = /\.(v[0-9.]*[0-9])$/;

/** The object name of a revision: `<repository>.<path segments>.<package>.<workspace>`. */
export function revisionName(key: RevisionKey): string {
  // Joined, a text is one piece of memory.
  return [key.repository, key.package.replaceAll('/', '.'), key.workspace].join('.');
}

/** The inverse of `revisionName`, for names that Sluice itself gives. */
export function revisionKeyOf(name: string): RevisionKey {
  const workspace = workspaceOfName(name);
  const [repository = '', ...segments] = name.slice(0, -workspace.length - 1).split('.');
  return { repository, package: segments.join('/'), workspace };
}

/** The deterministic id of a revision: UUID version 5 (RFC 9562) over group, kind, namespace and name, as Porch computes it. */
export function revisionUid(name: string, namespace: string = DEFAULT_NAMESPACE): string {
  return uidOf('packagerevision', name, namespace);
}

/** The object name of a package: `<repository>.<path segments>.<package>`. */
export function packageName(key: Pick<RevisionKey, 'repository' | 'package'>): string {
  return `${key.repository}.${key.package.replaceAll('/', '.')}`;
}

/** The id of a package, made as that of a revision is. */
export function packageUid(name: string, namespace: string): string {
  return uidOf('package', name, namespace);
}

function uidOf(what: string, name: string, namespace: string): string {
  const text = `${what}:porch.kpt.dev/v1alpha1/${namespace}/${name}`.toLowerCase();
  const hex = hash('sha1', Buffer.concat([UID_NAMESPACE, Buffer.from(text)]), 'hex');
  const variant = '89ab'[Number.parseInt(hex.charAt(16), 16) & 3];
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `5${hex.slice(13, 16)}`, `${variant}${hex.slice(17, 20)}`];
  return flat(`${parts.join('-')}-${hex.slice(20, 32)}`);
}

/** Copies a string into one piece of memory, since a concatenated one would keep all its parts alive. For ASCII. */
function flat(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}

/** Refuses names that could not be an object name or part of a ref. Existing revisions with other names stay readable. */
export function checkRevisionKey(key: RevisionKey): void {
  checkLabel(key.repository, 'repository name');
  for (const segment of key.package.split('/'))
    checkLabel(segment, `package path ${JSON.stringify(key.package)}: segment`);
  checkWorkspace(key.workspace);
  const name = revisionName(key);
  if (name.length > 253) {
    throw new SluiceError(
      'InvalidInput',
      `package revision name ${name} has ${name.length} characters, at most 253 are allowed`,
    );
  }
  if (workspaceOfName(name) !== key.workspace) {
    throw new SluiceError(
      'InvalidInput',
      `package revision name ${name} is also the name of workspace ${JSON.stringify(workspaceOfName(name))} of a package further up; choose another workspace than ${JSON.stringify(key.workspace)}`,
    );
  }
}

/** True if Sluice itself could have given this name. */
export function isRevisionKey(key: RevisionKey): boolean {
  try {
    checkRevisionKey(key);
    return true;
  } catch {
    // The reason is for callers that request such a name.
    return false;
  }
}

/** The workspace as it is read back from a name. Where that is another one, two revisions would share a name, a UID and a record. */
function workspaceOfName(name: string): string {
  return DOTTED_WORKSPACE.exec(name)?.[1] ?? name.slice(name.lastIndexOf('.') + 1);
}

function checkLabel(value: string, what: string): void {
  if (value.length > 63 || !DNS_LABEL.test(value)) {
    throw new SluiceError(
      'InvalidInput',
      `${what} ${JSON.stringify(value)} is not a DNS label: lower-case letters, digits and "-", at most 63 characters, starting and ending with a letter or digit`,
    );
  }
}

/** Like a DNS label, and dots as in `v1.2.3`, which Porch's clients use as workspace names. */
function checkWorkspace(value: string): void {
  if (value.length > 63 || !value.split('.').every((part) => DNS_LABEL.test(part))) {
    throw new SluiceError(
      'InvalidInput',
      `workspace name ${JSON.stringify(value)} must be lower-case letters, digits, "-" and ".", at most 63 characters`,
    );
  }
  if (value.endsWith('.lock')) {
    throw new SluiceError(
      'InvalidInput',
      `workspace name ${JSON.stringify(value)} must not end in ".lock", Git reserves it`,
    );
  }
}
