import { HostRules, LOOPBACK_ALLOWED } from './host-rules.ts';

/** Network settings of Git: the same for every repository, and set by the operator. */
export interface GitNetwork {
  readonly hosts: HostRules;
  /** Certificates in PEM of authorities that every remote may be signed by, besides those that this process trusts anyway. */
  readonly authorities?: string | undefined;
  /** True where no repository is on the machine of the server: a path would lead into its caches, and to packages of others. */
  readonly isRemoteOnly?: boolean | undefined;
  /** Called before each push to a remote; throws where this process may not write now, such as a server that does not lead any more. */
  readonly expectMayPush?: (() => void) | undefined;
}

/** For servers: no local address. */
export const PUBLIC_NETWORK: GitNetwork = { hosts: new HostRules() };

/** For a repository that is opened without rules on networks: this machine, besides public addresses. */
export const DEFAULT_NETWORK: GitNetwork = { hosts: LOOPBACK_ALLOWED };
