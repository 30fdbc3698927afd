import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { AUTHENTICATED_GROUP, type User } from './user.ts';

/** The parts of a request that an authenticator reads; an IncomingMessage fits. */
export interface AuthenticationRequest {
  readonly socket: Socket;
  readonly headers: IncomingHttpHeaders;
}

/**
 * One way to authenticate a request: a client certificate, a token, later an OIDC issuer.
 *
 * Contract: `authenticate` returns the user whom the request proves, and undefined if it proves none in this way, because the
 * credentials are missing or wrong. It rejects only if it cannot decide (an issuer that does not respond). It never trusts a header
 * that every client can set, such as X-Remote-User, and never reveals a token.
 *
 * Failed attempts are not counted by address. Guessing is infeasible (tokens contain 256 random bits, keys more), an attempt costs one
 * hash, and a limit would lock out all users behind the same address, which on loopback are all users of a machine, because of one
 * client with an old token.
 */
export interface Authenticator {
  authenticate(request: AuthenticationRequest): User | undefined | Promise<User | undefined>;
}

/**
 * Tries several in order; the first user counts. The failure of one is reported to `onError` and the next one is tried, so that an issuer
 * that is down locks out no user who has other credentials. Each user is in the group `system:authenticated`.
 */
export function firstOf(authenticators: readonly Authenticator[], onError: (error: unknown) => void): Authenticator {
  return {
    async authenticate(request) {
      for (const authenticator of authenticators) {
        try {
          const user = await authenticator.authenticate(request);
          if (user !== undefined) return withAuthenticatedGroup(user);
        } catch (error) {
          onError(error);
        }
      }
      return undefined;
    },
  };
}

/** The user as a member of the group of all authenticated users. */
export function withAuthenticatedGroup(user: User): User {
  if (user.groups.includes(AUTHENTICATED_GROUP)) return user;
  return { ...user, groups: [...user.groups, AUTHENTICATED_GROUP] };
}
