import { SluiceError } from '../../foundation/sluice-error.ts';
import type { GitCredentials, GitRemote, SshCredentials } from '../git-repository.ts';

/** The credentials of a remote for one request; undefined for none. Throws InvalidInput for characters that no protocol can carry. */
export async function readCredentials(remote: GitRemote): Promise<GitCredentials | undefined> {
  const credentials = await remote.credentials?.();
  const { basic } = credentials ?? {};
  if (basic !== undefined && /[\n\r\0]/.test(basic.username + basic.password))
    throw new SluiceError('InvalidInput', 'user name or password of a remote contains a line break');
  return credentials;
}

/**
 * Reads the key for a remote over ssh. Throws Refused if there is none: keys of the user or the machine are never used
 * instead.
 */
export async function readSshCredentials(remote: GitRemote): Promise<SshCredentials> {
  const { ssh } = (await remote.credentials?.()) ?? {};
  if (ssh !== undefined) return ssh;
  throw new SluiceError(
    'Refused',
    `cannot connect to remote ${remote.url}: ssh requires a key; set secretRef to a Secret with identity and known_hosts`,
  );
}
