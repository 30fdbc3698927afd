import { realpathSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { resolve } from 'node:path';
import { readSshAddress } from '../network/ssh-address.ts';
import { isHosted, localPath } from './open-location.ts';

/**
 * One text for the addresses of one Git repository, as far as their texts show it, without what most hosts make no difference for: the
 * case of letters, the user of ssh, a default port, a trailing `.git` and redundant slashes. For addresses that a package
 * names: they are compared without a look at the file system.
 */
export function comparableAddress(address: string): string {
  if (isHosted(address)) return address;
  const path = localPath(address);
  if (path !== undefined) return resolve(path).replace(/\.git$/, '');
  const ssh = readSshAddress(address);
  if (!('problem' in ssh)) {
    // A home folder is one of the user.
    const user = ssh.path.startsWith('~/') ? `${ssh.user}@` : '';
    return `ssh://${user}${ssh.host}:${ssh.port}${trimmed(`/${ssh.path}`)}`.toLowerCase();
  }
  const url = URL.parse(address);
  if (url === null) return address;
  const host = url.host.replace(/\.(?=:|$)/, '');
  return `${url.protocol}//${host}${trimmed(decoded(url.pathname))}`.toLowerCase();
}

/** As `comparableAddress`, and for a path without links; for addresses that are registered. */
export async function canonicalAddress(address: string): Promise<string> {
  const path = localPath(address);
  if (path === undefined || isHosted(address)) return comparableAddress(address);
  try {
    return await realpath(path);
  } catch {
    // It cannot be opened either; the text is all there is to compare.
    return resolve(path);
  }
}

/** As `canonicalAddress`, for code that must not wait. */
export function canonicalAddressNow(address: string): string {
  const path = localPath(address);
  if (path === undefined || isHosted(address)) return comparableAddress(address);
  try {
    return realpathSync(path);
  } catch {
    // As above.
    return resolve(path);
  }
}

/** A value that is the same for all addresses with one canonical form, and constant: a path may become a link at any time. */
export function addressGroup(address: string): string {
  return localPath(address) === undefined || isHosted(address) ? comparableAddress(address) : 'path';
}

function trimmed(path: string): string {
  return path
    .replaceAll(/\/{2,}/g, '/')
    .replace(/\/$/, '')
    .replace(/\.git$/i, '');
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    // URIError: it is compared as it is.
    return path;
  }
}

/** True if one folder of a repository is the other or contains it; `/` is the root. */
export function foldersOverlap(one: string, other: string): boolean {
  const [a, b] = [one, other].map((folder) => (folder === '/' ? '/' : `/${folder}/`));
  return a !== undefined && b !== undefined && (a.startsWith(b) || b.startsWith(a));
}
