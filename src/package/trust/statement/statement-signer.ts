import { sshSigningKey } from '../../../git/signing/ssh-signer.ts';
import { STATEMENT_NAMESPACE, type StatementSigner } from './statement-signature.ts';

/**
 * Creates a signer with a private key in the format of ssh-keygen or in PEM. Throws InvalidInput for other text, for keys with a
 * passphrase and for weak ones; no message contains a part of the key.
 */
export function statementSigner(privateKey: string): StatementSigner {
  const { publicKey, sign } = sshSigningKey(privateKey, STATEMENT_NAMESPACE);
  return {
    fingerprint: publicKey.fingerprint,
    publicKey: publicKey.line,
    sign: async (payload) => (await sign(payload)).toString('base64'),
  };
}
