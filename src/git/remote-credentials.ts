import { SluiceError } from '../foundation/sluice-error.ts';
import type { GitCredentials, GitRemote } from './git-repository.ts';

/** The credentials of a remote for one request; undefined for none. Throws InvalidInput for what no protocol can carry. */
export async function readCredentials(remote: GitRemote): Promise<GitCredentials | undefined> {
  const credentials = await remote.credentials?.();
  if (credentials !== undefined && /[\n\r\0]/.test(credentials.username + credentials.password))
    throw new SluiceError('InvalidInput', 'user name or password of a remote contains a line break');
  return credentials;
}
