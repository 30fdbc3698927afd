import { SluiceError } from '../foundation/sluice-error.ts';
import type { GitCredentials, GitRemote } from './git-repository.ts';

/** The credentials of a remote for one request; undefined for none. Throws InvalidInput for what no protocol can carry. */
export async function readCredentials(remote: GitRemote): Promise<GitCredentials | undefined> {
  const credentials = await remote.credentials?.();
  const { basic } = credentials ?? {};
  if (basic !== undefined && /[\n\r\0]/.test(basic.username + basic.password))
    throw new SluiceError('InvalidInput', 'user name or password of a remote contains a line break');
  return credentials;
}
