import type { Clock } from '../../foundation/time/clock.ts';
import { readPrivateFile } from '../certificates/private-file.ts';
import { tokenInKubeconfig, writeKubeconfig } from './kubeconfig.ts';
import { hashOfToken, MAX_TOKEN_FILE_BYTES, parseTokenFile, replaceTokens } from './token-file.ts';
import { MASTERS_GROUP } from './user.ts';

export interface AdminAccessOptions {
  readonly kubeconfig: string;
  readonly tokenFile: string;
  /** `https://127.0.0.1:6443`. */
  readonly server: string;
  /** The certificate of the authority, PEM. */
  readonly caData: string;
  readonly clock: Clock;
}

/** The user whose token is in the kubeconfig that the server writes. */
export const ADMIN_USER = 'admin';

/**
 * Writes this server, and a token that it accepts, into the kubeconfig. The token is created once and is independent of the address.
 * Only the kubeconfig contains it; if it is missing there or in the token file, a new one replaces it.
 */
export async function ensureAdminAccess({ kubeconfig, tokenFile, clock, ...entry }: AdminAccessOptions): Promise<void> {
  const present = await tokenInKubeconfig(kubeconfig, ADMIN_USER);
  const token =
    present !== undefined && (await isKnown(present, tokenFile, clock))
      ? present
      : await replaceTokens(tokenFile, { user: ADMIN_USER, groups: [MASTERS_GROUP] }, clock);
  await writeKubeconfig({ ...entry, path: kubeconfig, token, user: ADMIN_USER });
}

async function isKnown(token: string, tokenFile: string, clock: Clock): Promise<boolean> {
  const text = await readPrivateFile(tokenFile, MAX_TOKEN_FILE_BYTES);
  // The token authenticator reports the lines that are ignored.
  const entries = parseTokenFile(tokenFile, text ?? '', () => undefined);
  const hash = hashOfToken(token);
  return entries.some(
    (entry) =>
      entry.hash === hash &&
      entry.user.name === ADMIN_USER &&
      (entry.expires === undefined || entry.expires > clock.now()),
  );
}
