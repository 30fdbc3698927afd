/** Namespace of statement signatures, as in `ssh-keygen -Y verify -n`. */
export const STATEMENT_NAMESPACE = 'statement@sluice.dev';

/** Signs statements with one key. */
export interface StatementSigner {
  /** `SHA256:…` */
  readonly fingerprint: string;
  /** One line as in `id_ed25519.pub`, without a comment. */
  readonly publicKey: string;
  /** The SSH signature (PROTOCOL.sshsig, namespace `statement@sluice.dev`) as base64 in one line, without armor. */
  sign(payload: string): Promise<string>;
}

/**
 * The fingerprint of the key that made a signature, if it is valid for exactly this payload and the namespace of statements; undefined
 * for anything else, including text that is no signature. Whether the key is trusted is checked separately.
 */
export type VerifySignature = (payload: string, signature: string) => Promise<string | undefined>;
