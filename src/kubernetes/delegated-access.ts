import type { Clock } from '../foundation/time/clock.ts';
import { type Authenticator, firstOf } from '../server/authentication/authenticator.ts';
import { CertificateAuthenticator } from '../server/authentication/certificate-authenticator.ts';
import { followClusterTrust } from '../server/authentication/follow-cluster-trust.ts';
import { RequestHeaderAuthenticator } from '../server/authentication/request-header-authenticator.ts';
import { TokenReviewAuthenticator } from '../server/authentication/token-review-authenticator.ts';
import { AccessReviewAuthorizer } from '../server/authorization/access-review-authorizer.ts';
import type { Authorizer } from '../server/authorization/authorizer.ts';
import { clusterReviews } from './cluster-reviews.ts';
import type { HttpClient } from './http-client.ts';

/** As many as reviews of admission may be in progress, each of which has one question at a time. */
const ADMISSION_REVIEWS = { maxRunning: 50, maxEntries: 1024 } as const;

export interface DelegatedAccessOptions {
  /** Its user is bound to ClusterRole `system:auth-delegator` and Role `kube-system/extension-apiserver-authentication-reader`. */
  readonly client: HttpClient;
  readonly clock: Clock;
  /** A token must be valid for one of these. Default: for the kube-apiserver. */
  readonly audiences?: readonly string[];
  /** Called with the authorities of the listener, in PEM, whenever they change. */
  readonly onAuthorities: (clientCa: string) => void;
  /** Called with failures that are retried, and with credentials that could not be checked. */
  readonly onError: (error: unknown) => void;
}

/** Authentication and authorisation by a cluster. */
export interface DelegatedAccess {
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer;
  /** The same for the admission webhook, whose callers need no credentials: it has results and limits of its own. */
  readonly admissionAuthorizer: Authorizer;
  /** The authorities of client certificates, in PEM, for the listener. */
  readonly clientCa: string;
  /** Resolves when it is known whom the cluster trusts. Until then only tokens authenticate. */
  whenSynced(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Leaves it to a cluster who the users of an extension server are and what they may do, as `k8s.io/apiserver` does: the aggregator names the
 * users of the requests that it forwards; other callers present a client certificate or a token of the cluster.
 */
export function delegateAccess(options: DelegatedAccessOptions): DelegatedAccess {
  const { client, clock, audiences = [], onAuthorities, onError } = options;
  const reviewer = clusterReviews(client);
  let clientCa = '';
  const trust = followClusterTrust({
    ...{ client, clock, onError },
    onChange({ requestHeader, clientAuthorities }) {
      const changed = (requestHeader?.authorities.pem ?? '') + clientAuthorities.pem;
      if (changed === clientCa) return;
      clientCa = changed;
      onAuthorities(clientCa);
    },
  });
  const authenticators = [
    new RequestHeaderAuthenticator(clock, () => trust.current.requestHeader),
    new CertificateAuthenticator(clock, () => trust.current.clientAuthorities),
    new TokenReviewAuthenticator({ reviewer, clock, audiences }),
  ];
  return {
    authenticator: firstOf(authenticators, onError),
    authorizer: new AccessReviewAuthorizer({ reviewer, clock }),
    admissionAuthorizer: new AccessReviewAuthorizer({ reviewer, clock, ...ADMISSION_REVIEWS }),
    get clientCa() {
      return clientCa;
    },
    whenSynced: () => trust.whenSynced(),
    stop: () => trust.stop(),
  };
}
