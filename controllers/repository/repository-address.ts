import { realpath } from 'node:fs/promises';
import { resolve } from 'node:path';
import { isHosted, localPath } from '../../src/git/open-location.ts';
import { readSshAddress } from '../../src/git/ssh/ssh-address.ts';

/** One text for the addresses of one Git repository, as far as they can be compared without asking it. */
export async function canonicalAddress(address: string): Promise<string> {
  if (isHosted(address)) return address;
  const path = localPath(address);
  if (path === undefined) {
    const ssh = readSshAddress(address);
    const url = 'problem' in ssh ? (URL.parse(address)?.href ?? address) : ssh.url;
    return url.replace(/\/+$/, '').replace(/\.git$/, '');
  }
  try {
    return await realpath(path);
  } catch {
    // It cannot be opened either; the text is all there is to compare.
    return resolve(path);
  }
}

/** True if one folder of a repository is the other or lies in it; `/` is the root. */
export function overlap(one: string, other: string): boolean {
  const [a, b] = [one, other].map((folder) => (folder === '/' ? '/' : `/${folder}/`));
  return a !== undefined && b !== undefined && (a.startsWith(b) || b.startsWith(a));
}
