import { sshSigningKey } from '../../../git/signing/ssh-signer.ts';
import { STATEMENT_NAMESPACE, type StatementSigner } from './statement-signature.ts';

/**
 * Signs statements with a private key as ssh-keygen writes it, or one in PEM. Throws InvalidInput for text that is no such key, for keys
 * with a passphrase and for weak ones; no message holds anything of the key.
 */
export function statementSigner(privateKey: string): StatementSigner {
  const { publicKey, sign } = sshSigningKey(privateKey, STATEMENT_NAMESPACE);
  return {
    fingerprint: publicKey.fingerprint,
    publicKey: publicKey.line,
    sign: async (payload) => (await sign(payload)).toString('base64'),
  };
}
