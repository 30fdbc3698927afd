import { SluiceError } from '../../foundation/sluice-error.ts';
import { systemClock, timestamp } from '../../foundation/time/clock.ts';
import type { TrustLedger } from '../../package/trust/ledger/trust-ledger.ts';
import type { CommandResult, Invocation } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { inKeyRing, type KeyOptions, printedAsData } from './in-key-ring.ts';
import { type KeyRing, keyOf } from './key-ring.ts';
import { rotate } from './key-rotate.ts';

export interface RevokeOptions extends KeyOptions {
  readonly force?: boolean;
}

/** `sluice key revoke` */
export function keyRevoke(fingerprint: string, options: RevokeOptions, invocation: Invocation): Promise<CommandResult> {
  const { terminal } = invocation;
  return inKeyRing(options, invocation, async (ring) => {
    const signs = ownFingerprint(ring) === fingerprint;
    const { revocation } = keyOf(ring.ledger, fingerprint);
    if (signs && options.force !== true && revocation === undefined)
      throw new SluiceError(
        'Refused',
        `${fingerprint} signs statements here; with --force Sluice makes another key first, and then revokes this one`,
      );
    // First, so that there is always a key that may sign.
    const own = signs ? (await rotate(ring, invocation)).own : undefined;
    await revoke(ring.ledger, fingerprint, timestamp(systemClock.now()));
    const revoked = keyOf(ring.ledger, fingerprint);
    if (printedAsData({ revoked, own: own ?? null }, options, invocation)) return 0;
    if (own !== undefined) terminal.line(`${own.fingerprint} signs statements from now on`);
    terminal.line(
      revocation === undefined
        ? `${fingerprint} revoked: what it signed until now and Sluice has seen keeps its validity, nothing later counts`
        : `${fingerprint} was revoked at ${printable(revocation.at)} already`,
    );
    return 0;
  });
}

/** What other processes have acknowledged until now keeps its validity. */
export async function revoke(ledger: TrustLedger, fingerprint: string, at: string): Promise<void> {
  await ledger.refresh?.();
  ledger.revokeKey(fingerprint, at);
}

/** Undefined where the own key cannot be read: any key may be revoked then. */
function ownFingerprint(ring: KeyRing): string | undefined {
  try {
    return ring.own().fingerprint;
  } catch (error) {
    if (error instanceof SluiceError) return undefined;
    throw error;
  }
}
