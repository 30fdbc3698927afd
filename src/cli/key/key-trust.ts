import { SluiceError } from '../../foundation/sluice-error.ts';
import { systemClock, timestamp } from '../../foundation/time/clock.ts';
import { parsePublicKeyList } from '../../git/signing/public-key-list.ts';
import type { CommandResult, Invocation } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { readSecretFile } from '../repo/put-secret.ts';
import { inKeyRing, type KeyOptions, printedAsData } from './in-key-ring.ts';
import { keyOf } from './key-ring.ts';

/** The first line of a private key in PEM, of OpenSSH or another program. */
const PRIVATE_KEY = /^-----BEGIN [A-Z ]*PRIVATE KEY-----/m;
/** Every line of an unrelated file is invalid. */
const MAX_NAMED_PROBLEMS = 3;

/** `sluice key trust`: all keys of the source, or none if one of them cannot be read or was revoked. */
export async function keyTrust(source: string, options: KeyOptions, invocation: Invocation): Promise<CommandResult> {
  const { terminal } = invocation;
  const isKey = /^(ssh|ecdsa|sk)-\S+\s+\S/.test(source.trim());
  const text = isKey ? source : await readSecretFile('public keys', source);
  const where = isKey ? 'the public key' : source === '-' ? 'stdin' : source;
  if (PRIVATE_KEY.test(text))
    throw new SluiceError(
      'InvalidInput',
      `cannot trust ${where}: it is a private key, which stays with its owner; give the public key, which "ssh-keygen -y -f FILE" prints`,
    );
  const { keys, problems } = parsePublicKeyList(text);
  if (problems.length > 0) {
    const more = problems.length - MAX_NAMED_PROBLEMS;
    const named = [...problems.slice(0, MAX_NAMED_PROBLEMS), ...(more > 0 ? [`and ${more} more lines`] : [])];
    throw new SluiceError(
      'InvalidInput',
      `${where}: ${named.join('; ')}; give public keys as "sluice key show" prints them, one a line`,
    );
  }
  return inKeyRing(options, invocation, ({ ledger }) => {
    const before = new Map(ledger.keys().map((key) => [key.fingerprint, key]));
    for (const { fingerprint } of keys) {
      const revocation = before.get(fingerprint)?.revocation;
      if (revocation === undefined) continue;
      throw new SluiceError('Refused', `${fingerprint} was revoked at ${revocation.at}: a revoked key stays revoked`);
    }
    const addedAt = timestamp(systemClock.now());
    for (const { fingerprint, line, comment } of keys)
      ledger.addKey({ fingerprint, publicKey: line, comment, origin: 'added', addedAt });
    const trusted = keys.map(({ fingerprint }) => keyOf(ledger, fingerprint));
    if (printedAsData({ trusted }, options, invocation)) return 0;
    for (const { fingerprint, comment } of trusted) {
      const name = comment === '' ? fingerprint : `${fingerprint} (${printable(comment)})`;
      terminal.line(before.has(fingerprint) ? `${name} is trusted already` : `${name} trusted`);
    }
    return 0;
  });
}
