import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { userNameProblem } from '../../resource/object/actor-name.ts';
import { ANONYMOUS_USER, AUTHENTICATED_GROUP, UNAUTHENTICATED_GROUP, type User } from './user.ts';

/** The parts of a request that an authenticator reads; an IncomingMessage fits. */
export interface AuthenticationRequest {
  readonly socket: Socket;
  readonly headers: IncomingHttpHeaders;
  /** All values of each header, by its name in lower case. */
  readonly headersDistinct: NodeJS.Dict<string[]>;
}

/**
 * One way to authenticate a request: a client certificate, a token, later an OIDC issuer.
 *
 * Contract: `authenticate` returns the user whom the request proves, and undefined if it proves none in this way, because the
 * credentials are missing or wrong. It rejects only if it cannot decide (an issuer that does not respond). It never trusts a header
 * that every client can set, such as X-Remote-User without the certificate of a trusted proxy, and never reveals a token.
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
 * that is down locks out no user who has other credentials. Unavailable if no other one proves a user then: credentials that were not
 * checked are not wrong. A user whose name is reserved or misleading is refused. Each user is in the group `system:authenticated`.
 */
export function firstOf(authenticators: readonly Authenticator[], onError: (error: unknown) => void): Authenticator {
  return {
    async authenticate(request) {
      let failure: { readonly cause: unknown } | undefined;
      for (const authenticator of authenticators) {
        try {
          const user = await authenticator.authenticate(request);
          if (user === undefined) continue;
          // The name would be mistaken for another one in histories and approvals, and policies name users.
          const problem = userNameProblem(user.name);
          if (problem === undefined) return withAuthenticatedGroup(user);
          onError(new SluiceError('Refused', `user ${JSON.stringify(user.name)} is not authenticated: ${problem}`));
          return undefined;
        } catch (error) {
          onError(error);
          failure ??= { cause: error };
        }
      }
      if (failure === undefined) return undefined;
      // The cause may name internal addresses, so that only the log has it.
      const message =
        'cannot authenticate the request: the credentials could not be checked; try again later. The log of the server has the cause';
      throw new SluiceError('Unavailable', message, { ...failure, details: { retryAfterSeconds: 1 } });
    },
  };
}

/** The user as a member of the group of all authenticated users, unless a proxy vouches that it has not authenticated the user. */
export function withAuthenticatedGroup(user: User): User {
  const { name, groups } = user;
  if (name === ANONYMOUS_USER || groups.includes(UNAUTHENTICATED_GROUP)) return user;
  if (groups.includes(AUTHENTICATED_GROUP)) return user;
  return { ...user, groups: [...groups, AUTHENTICATED_GROUP] };
}
