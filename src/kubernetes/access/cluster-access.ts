import type { Actor } from '../../resource/object/request-context.ts';

/** What proves to a server who asks; may change from call to call. */
export interface Proof {
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** PEM of a client certificate and its key that a plugin gave; those of a kubeconfig stand in `ClusterTls`. */
  readonly certificate?: { readonly cert: string; readonly key: string };
}

export interface Credentials {
  /** What to show now. Unauthenticated if it cannot be had, with what to do. */
  proof(): Promise<Proof>;
  /** The server did not accept the last proof: the next one is made anew. */
  forget(): void;
}

export interface ClusterTls {
  /** PEM. The authorities of the machine if absent. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** The name that the server's certificate must have, if not the one in the address. */
  readonly serverName?: string;
  /** True: whoever answers is believed to be the server. */
  readonly insecure: boolean;
}

/** Everything that is needed to talk to one Kubernetes API server as one user. */
export interface ClusterAccess {
  /** `https://host:port` with an optional path and no slash at the end. */
  readonly server: string;
  /** Where this comes from, for messages: `context "sluice" of /home/anna/.kube/config`. */
  readonly source: string;
  /** The user's name in the kubeconfig; the server may know another one. */
  readonly user: string;
  /** What commands use if nobody names a namespace. */
  readonly namespace: string;
  readonly tls: ClusterTls;
  /** Address of an HTTP proxy. */
  readonly proxy?: string;
  readonly credentials: Credentials;
  /** Act as somebody else from the start. */
  readonly impersonate?: Actor;
}
