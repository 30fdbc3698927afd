import { z } from 'zod';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import { parseSshPublicKey } from '../../../git/signing/ssh-public-key.ts';
import type { TrustedKey } from '../ledger/trust-ledger.ts';

/*
 * A revoked key in an allowed-signers file: a comment for OpenSSH, which supports revocation by dates only, and dates are chosen by the
 * signer. Sluice reads from it what the key signed before it was revoked.
 */

const PREFIX = '# sluice-revoked ';

const schema = z.strictObject({
  publicKey: z.string(),
  comment: z.string(),
  at: z.string(),
  heads: z.record(z.string(), z.string().regex(/^[0-9a-f]{40}$/)),
  statements: z.array(z.string().regex(/^[0-9a-f]{64}$/)),
});

/** One line. `statements` are the digests of the statements that were known when the key was revoked. Empty for a key that is trusted. */
export function formatRevokedKey(
  { publicKey, comment, revocation }: TrustedKey,
  statements: readonly string[],
): string {
  if (revocation === undefined) return '';
  const { at, heads } = revocation;
  return `${PREFIX}${JSON.stringify({ publicKey, comment, at, heads, statements })}\n`;
}

/** The revoked keys of an allowed-signers file, and the file without their lines. Throws InvalidInput for a line that is damaged. */
export function takeRevokedKeys(text: string): { readonly revoked: readonly TrustedKey[]; readonly rest: string } {
  const revoked: TrustedKey[] = [];
  const rest = text.split('\n').map((line, index) => {
    if (!line.startsWith(PREFIX)) return line;
    revoked.push(parseLine(line.slice(PREFIX.length), index + 1));
    return '';
  });
  return { revoked, rest: rest.join('\n') };
}

function parseLine(text: string, line: number): TrustedKey {
  try {
    const { publicKey, comment, at, heads, statements } = schema.parse(JSON.parse(text));
    const { fingerprint, line: normal } = parseSshPublicKey(publicKey);
    return {
      ...{ fingerprint, publicKey: normal, comment, origin: 'added', addedAt: '1970-01-01T00:00:00Z' },
      // There is no mark to compare an order with.
      revocation: { at, order: 0, heads, statements: new Set(statements) },
    };
  } catch (error) {
    throw new SluiceError(
      'InvalidInput',
      `line ${line} of the allowed-signers file describes a revoked key and is damaged; print the file again with "sluice key show --allowed-signers"`,
      { cause: error },
    );
  }
}
