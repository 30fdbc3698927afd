import { isSluiceError } from '../../foundation/sluice-error.ts';
import { freezesAt, freezeWarnings } from '../../package/model/policy/approval-rules.ts';
import { freezeRuleOf, freezesInForce } from '../../package/store/policies/freeze-objects.ts';
import { freezeKind } from '../../resource/kinds/sluice/freeze.ts';
import { printable } from '../output/printable.ts';
import type { Terminal } from '../output/terminal.ts';
import type { Access } from './access.ts';

/** Refusals of a server that has no freezes, or whose caller may not read them. */
const UNKNOWN = ['Refused', 'NotFound', 'Unsupported'] as const;

/** Prints a line on stderr for each freeze in force in a namespace, or in any: what a command shows does not move meanwhile. */
export async function printFreezes(
  { client, clock, isSluice, systemNamespace }: Access,
  terminal: Terminal,
  namespace: string | undefined,
): Promise<void> {
  if (!isSluice) return;
  const now = clock.now();
  try {
    const freezes =
      namespace === undefined
        ? freezesAt(
            (await client.list(freezeKind)).items.map((freeze) => freezeRuleOf(freeze, systemNamespace)),
            now,
          )
        : await freezesInForce(client, { namespace, systemNamespace }, now);
    for (const text of freezeWarnings(freezes, now))
      terminal.note(terminal.style('red', printable(text), terminal.err));
  } catch (error) {
    // A command that only shows something does not fail for the lack of a banner.
    if (!UNKNOWN.some((code) => isSluiceError(error, code))) throw error;
  }
}
