import { SluiceError } from '../../foundation/sluice-error.ts';
import { formatRevokedKey } from '../../package/trust/keys/revoked-key-line.ts';
import type { TrustedKey, TrustLedger } from '../../package/trust/ledger/trust-ledger.ts';
import { STATEMENT_NAMESPACE } from '../../package/trust/statement/statement-signature.ts';
import type { CommandResult, Invocation } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { table } from '../output/table.ts';
import { inKeyRing, type KeyOptions, printedAsData } from './in-key-ring.ts';
import type { KeyRing } from './key-ring.ts';

export interface ShowOptions extends KeyOptions {
  readonly allowedSigners?: boolean;
  readonly headers: boolean;
}

/** Argument of `ssh-keygen -Y verify -I`; the same for all keys, so that one command verifies any statement. */
const PRINCIPAL = 'sluice';

/** `sluice key show` */
export function keyShow(options: ShowOptions, invocation: Invocation): Promise<CommandResult> {
  const { terminal } = invocation;
  return inKeyRing(
    options,
    invocation,
    (ring) => {
      const own = ownOf(ring, invocation);
      const keys = ring.ledger.keys();
      if (options.allowedSigners === true) {
        terminal.out.write(keys.map((key) => allowedSigner(key, ring.ledger)).join(''));
        return own === undefined ? 1 : 0;
      }
      const described = own === undefined ? null : { fingerprint: own.fingerprint, publicKey: own.publicKey };
      if (!printedAsData({ own: described, source: ring.source.name, keys }, options, invocation)) {
        if (own !== undefined) {
          terminal.line(`${own.publicKey} ${printable(own.comment)}`.trimEnd());
          terminal.line(`signs statements here: ${own.fingerprint}, from ${printable(ring.source.name)}`);
          terminal.line();
        }
        const rows = keys.map((key) => [key.fingerprint, key.origin, key.addedAt, stateOf(key, own), key.comment]);
        const { headers } = options;
        terminal.out.write(table(['fingerprint', 'origin', 'added', 'state', 'comment'], rows, { headers }));
      }
      return own === undefined ? 1 : 0;
    },
    false,
  );
}

/**
 * Returns the own key; reports an error and returns undefined if it cannot be read, so that the other keys are printed
 * anyway.
 */
function ownOf(ring: KeyRing, { terminal }: Invocation): TrustedKey | undefined {
  try {
    return ring.own();
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    terminal.note(`${terminal.style('red', 'error:', terminal.err)} ${printable(error.message)}`);
    return undefined;
  }
}

function stateOf(key: TrustedKey, own: TrustedKey | undefined): string {
  if (key.revocation !== undefined) return `revoked ${key.revocation.at}`;
  if (key.fingerprint === own?.fingerprint) return 'signs';
  if (key.origin === 'added') return 'trusted';
  // While the key cannot be read, it is unknown which of the own keys would sign.
  return own === undefined ? 'unknown' : 'retired';
}

/** A line of an allowed-signers file. OpenSSH supports revocation by dates only, so a revoked key is a comment for it. */
function allowedSigner(key: TrustedKey, ledger: TrustLedger): string {
  const { publicKey, comment, revocation } = key;
  const line = `${PRINCIPAL} namespaces="${STATEMENT_NAMESPACE}" ${publicKey} ${printable(comment)}`.trimEnd();
  if (revocation === undefined) return `${line}\n`;
  const known = formatRevokedKey(key, ledger.statementsUpTo(revocation.order));
  return `# revoked at ${printable(revocation.at)}: ${line}\n${known}`;
}
