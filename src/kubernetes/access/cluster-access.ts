import type { LookupFunction } from 'node:net';
import type { Actor } from '../../resource/object/request-context.ts';

/** The proof of the caller's identity for a server; may change between calls. */
export interface Proof {
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** PEM of a client certificate and its key from a plugin; those of a kubeconfig are in `ClusterTls`. */
  readonly certificate?: { readonly cert: string; readonly key: string };
  /** PEM of the authorities of the server, where they can change; else those of `ClusterTls`. */
  readonly ca?: string;
}

export interface Credentials {
  /** The current proof. Throws Unauthenticated, with the next step, if there is none. */
  proof(): Promise<Proof>;
  /** Drops the last proof, since the server did not accept it: the next one is created again. */
  forget(): void;
}

export interface ClusterTls {
  /** PEM. If absent, the certificate authorities of the machine. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** The name that the server's certificate must have, if not the one in the address. */
  readonly serverName?: string;
  /** True if the certificate of the server is not verified. */
  readonly insecure: boolean;
}

/** Everything that is required to call one Kubernetes API server as one user. */
export interface ClusterAccess {
  /** `https://host:port` with an optional path and no slash at the end. */
  readonly server: string;
  /** The source, for messages: `context "sluice" of /home/anna/.kube/config`. */
  readonly source: string;
  /** The user's name in the kubeconfig; the server may use another one. */
  readonly user: string;
  /** The namespace of commands without --namespace. */
  readonly namespace: string;
  readonly tls: ClusterTls;
  /** Address of an HTTP proxy. */
  readonly proxy?: string;
  readonly credentials: Credentials;
  /** Resolves the name of the server, where not every address is permitted. Default: as the system resolves names. */
  readonly lookup?: LookupFunction;
  /** The user to impersonate in every request. */
  readonly impersonate?: Actor;
}
