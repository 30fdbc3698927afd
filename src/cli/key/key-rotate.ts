import { SluiceError } from '../../foundation/sluice-error.ts';
import { trustedKeysOf, trusts } from '../../package/trust/keys/trusted-keys.ts';
import type { TrustedKey } from '../../package/trust/ledger/trust-ledger.ts';
import { TRUSTED_KEYS_ANNOTATION } from '../../resource/kinds/porch/repository.ts';
import { keyText, keyOf as objectKeyOf } from '../../resource/object/object.ts';
import type { CommandResult, Invocation } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { inKeyRing, type KeyOptions, printedAsData } from './in-key-ring.ts';
import type { KeyRing } from './key-ring.ts';

/** `sluice key rotate` */
export function keyRotate(options: KeyOptions, invocation: Invocation): Promise<CommandResult> {
  return inKeyRing(options, invocation, async (ring) => {
    const { before, own } = await rotate(ring, invocation);
    if (printedAsData({ own, before: before ?? null }, options, invocation)) return 0;
    invocation.terminal.line(`${own.publicKey} ${printable(own.comment)}`);
    invocation.terminal.line(`${own.fingerprint} signs statements from now on`);
    if (before !== undefined)
      invocation.terminal.line(
        before.revocation === undefined
          ? `${before.fingerprint} stays trusted for what it signed; its private part is removed`
          : `${before.fingerprint} was revoked at ${printable(before.revocation.at)}; its private part is removed`,
      );
    return 0;
  });
}

/** Makes a new own key and reports where it has to be made known. `before` is undefined where the old one could not be read. */
export async function rotate(
  ring: KeyRing,
  { terminal }: Invocation,
): Promise<{ readonly before: TrustedKey | undefined; readonly own: TrustedKey }> {
  const warn = (text: string) =>
    terminal.note(`${terminal.style('yellow', 'warning:', terminal.err)} ${printable(text)}`);
  let before: TrustedKey | undefined;
  try {
    before = ring.own();
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    warn(
      `the key that signed until now cannot be read (${error.message}); what it signed counts if "sluice key show" lists it`,
    );
  }
  const own = await ring.rotate();
  for (const repository of ring.repositories) {
    const { annotations } = repository.metadata;
    if (trusts(trustedKeysOf(annotations, ring.ledger.keys()).keys, own.fingerprint)) continue;
    const name = keyText(objectKeyOf(repository));
    warn(
      `Repository ${name} lists the keys that it trusts: add the new one to its annotation ${TRUSTED_KEYS_ANNOTATION}`,
    );
  }
  return { before, own };
}
