import { readFile } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import { cacheCredentials } from './cached-credentials.ts';
import type { Credentials, Proof } from './cluster-access.ts';
import { type KubeconfigUser, pluginCredentials } from './plugin-credentials.ts';

/**
 * Milliseconds for which the content of files is used before they are read again: clusters renew tokens every hour.
 */
const FILE_LIFETIME_MS = 60_000;

/** The credentials of a user of a kubeconfig, apart from a client certificate. */
export function kubeconfigCredentials(options: KubeconfigUser): Credentials {
  const { user, folder, source, clock } = options;
  if (user === undefined) return fixedCredentials({});
  const { exec, tokenFile, token, username, password = '' } = user;
  if (exec) return pluginCredentials({ ...options, exec });
  if (tokenFile !== undefined)
    return fileCredentials({ tokenFile: isAbsolute(tokenFile) ? tokenFile : join(folder, tokenFile) }, source, clock);
  if (token !== undefined) return fixedCredentials(bearer(token, source));
  if (username === undefined) return fixedCredentials({});
  const pair = Buffer.from(`${username}:${password}`).toString('base64');
  return fixedCredentials({ authorization: `Basic ${pair}` });
}

export interface CredentialFiles {
  readonly tokenFile: string;
  /** The authorities of the server, which a cluster replaces together with its certificates. */
  readonly caFile?: string;
}

/** The token in a file, and the new one soon after the file changed. */
export function fileCredentials({ tokenFile, caFile }: CredentialFiles, source: string, clock: Clock): Credentials {
  return cacheCredentials(clock, FILE_LIFETIME_MS, async () => {
    try {
      const headers = bearer((await readFile(tokenFile, 'utf8')).trim(), source);
      return caFile === undefined ? { headers } : { headers, ca: await readFile(caFile, 'utf8') };
    } catch (error) {
      if (error instanceof SluiceError) throw error;
      throw new SluiceError('Unauthenticated', `${source}: the credentials cannot be read: ${messageOf(error)}`, {
        cause: error,
      });
    }
  });
}

function fixedCredentials(headers: Proof['headers']): Credentials {
  return { proof: () => Promise.resolve({ headers }), forget: () => undefined };
}

function bearer(token: string, source: string): Proof['headers'] {
  // The error of the HTTP library would contain the header.
  if (!/^[\x21-\x7e]+$/.test(token))
    throw new SluiceError('InvalidInput', `${source}: the token is empty or has invalid characters`);
  return { authorization: `Bearer ${token}` };
}
