import { isSluiceError } from '../../../foundation/sluice-error.ts';
import { parseSshSignature, type SshSignature, verifySshSignature } from '../../../git/signing/ssh-signature.ts';
import { STATEMENT_NAMESPACE, type VerifySignature } from './statement-signature.ts';

/** See VerifySignature. The signature is accepted with and without armor; the calculation runs in the thread pool. */
export const verifySignature: VerifySignature = async (payload, signature) => {
  const parsed = parse(signature);
  if (parsed === undefined) return undefined;
  const valid = await verifySshSignature(parsed, payload, STATEMENT_NAMESPACE);
  return valid ? parsed.publicKey.fingerprint : undefined;
};

function parse(signature: string): SshSignature | undefined {
  try {
    return parseSshSignature(signature);
  } catch (error) {
    if (isSluiceError(error, 'InvalidInput')) return undefined;
    throw error;
  }
}
