import type { Clock } from '../../foundation/clock.ts';
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
 * Sees to it that the kubeconfig leads to this server with a token that the server knows. The token is made once and stays,
 * whatever the address. It is kept in the kubeconfig alone; if that is gone, or was taken from the list of tokens, a new one
 * is made and the old one is forgotten.
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
  // Whoever uses the tokens is told of lines that are passed over.
  const entries = parseTokenFile(tokenFile, text ?? '', () => undefined);
  const hash = hashOfToken(token);
  return entries.some(
    (entry) =>
      entry.hash === hash &&
      entry.user.name === ADMIN_USER &&
      (entry.expires === undefined || entry.expires > clock.now()),
  );
}
