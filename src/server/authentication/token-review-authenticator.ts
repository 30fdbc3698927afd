import type { Clock } from '../../foundation/time/clock.ts';
import type { AuthenticationRequest, Authenticator } from './authenticator.ts';
import { type RetryReviewOptions, retryReview } from './retry-review.ts';
import { ReviewCache } from './review-cache.ts';
import { bearerToken } from './token-authenticator.ts';
import type { User } from './user.ts';

/** What a cluster reports about a token. */
export interface TokenReviewStatus {
  /** Undefined: the token proves no user. */
  readonly user: User | undefined;
  /** For which of the requested audiences the token is valid. */
  readonly audiences: readonly string[];
  /** Why it could not be checked, or why it is invalid; empty if the cluster gives no reason. */
  readonly error: string;
}

/**
 * Has a cluster review tokens (`authentication.k8s.io/v1 TokenReview`). `reviewToken` rejects with a SluiceError that does not contain the
 * token, and ends when `signal` aborts.
 */
export interface TokenReviewer {
  reviewToken(token: string, audiences: readonly string[], signal: AbortSignal): Promise<TokenReviewStatus>;
}

export interface TokenReviewAuthenticatorOptions extends Omit<RetryReviewOptions, 'signal'> {
  readonly reviewer: TokenReviewer;
  readonly clock: Clock;
  /** A token must be valid for one of these. Default: for the kube-apiserver. */
  readonly audiences?: readonly string[];
}

/** Those of `DelegatingAuthenticationOptions`: short enough that a revoked token ends soon, long enough for a storm of requests. */
const ACCEPTED_MS = 10_000;
const REFUSED_MS = 10_000;
/** A cluster does not distinguish an invalid token from one whose service account it does not know yet. */
const FAILED_MS = 1000;
/** The tokens of OIDC issuers have some thousands of characters. */
const MAX_TOKEN_LENGTH = 16_384;

/**
 * Authenticates users by bearer tokens that a cluster reviews: those of service accounts, of OIDC issuers, and what else the cluster accepts.
 * A token that was revoked may be accepted for 10 seconds more. Rejects if the cluster does not review the token.
 */
export class TokenReviewAuthenticator implements Authenticator {
  readonly #options: TokenReviewAuthenticatorOptions;
  readonly #cache: ReviewCache<TokenReviewStatus>;

  constructor(options: TokenReviewAuthenticatorOptions) {
    this.#options = options;
    this.#cache = new ReviewCache({ clock: options.clock, lifetimeMs, makesKnown: ({ user }) => user !== undefined });
  }

  async authenticate({ headers }: AuthenticationRequest): Promise<User | undefined> {
    const token = bearerToken(headers.authorization);
    if (token === undefined || token.length > MAX_TOKEN_LENGTH) return undefined;
    const { reviewer, audiences = [], ...retries } = this.#options;
    const { user, audiences: found } = await this.#cache.get(token, (signal) =>
      retryReview((end) => reviewer.reviewToken(token, audiences, end), { ...retries, signal }),
    );
    // A cluster that does not name the audiences has judged the token for its own.
    const isForUs = audiences.length === 0 || audiences.some((audience) => found.includes(audience));
    return isForUs ? user : undefined;
  }
}

function lifetimeMs({ user, error }: TokenReviewStatus): number {
  if (user !== undefined) return ACCEPTED_MS;
  return error === '' ? REFUSED_MS : FAILED_MS;
}
