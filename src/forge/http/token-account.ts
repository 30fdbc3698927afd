import { createHash } from 'node:crypto';

/** The identity of a user by a token: hosts limit all requests with it together. Reveals nothing about the token. */
export function tokenAccount(token: string): string {
  return `token ${createHash('sha256').update(token).digest('hex').slice(0, 32)}`;
}
