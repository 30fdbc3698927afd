import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { AUTHENTICATED_GROUP, type User } from './user.ts';

/** What an authenticator may look at; an IncomingMessage fits. */
export interface AuthenticationRequest {
  readonly socket: Socket;
  readonly headers: IncomingHttpHeaders;
}

/**
 * One way to prove who asks: a client certificate, a token, later an OIDC issuer.
 *
 * Contract: `authenticate` returns the user if the request proves one, and undefined if it proves nobody by this way, be it
 * that nothing is there or that what is there is wrong. It throws only if it cannot tell (an issuer that does not answer).
 * It never believes a header that anybody can set, such as X-Remote-User, and never tells a token to anyone.
 *
 * Failed attempts are not counted by address. Guessing is hopeless (tokens hold 256 random bits, keys more), an attempt
 * costs one hash, and a limit would lock out everybody behind the same address: on loopback that is all users of a machine,
 * because of one client with an old token.
 */
export interface Authenticator {
  authenticate(request: AuthenticationRequest): User | undefined | Promise<User | undefined>;
}

/**
 * Tries several in order; the first proof counts. One that throws is told to `onError` and passed over, so that an issuer
 * that is down keeps nobody out who has another proof. Whoever is proven is in the group `system:authenticated`.
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

/** The user as one of those whose name is proven. */
export function withAuthenticatedGroup(user: User): User {
  if (user.groups.includes(AUTHENTICATED_GROUP)) return user;
  return { ...user, groups: [...user.groups, AUTHENTICATED_GROUP] };
}
