import { age } from '../../foundation/time/age.ts';
import { freezesAt } from '../../package/model/policy/approval-rules.ts';
import { freezeRuleOf } from '../../package/store/policies/freeze-objects.ts';
import { type Freeze, freezeKind } from '../../resource/kinds/sluice/freeze.ts';
import type { Stored } from '../../resource/object/object.ts';
import type { Access } from '../access/access.ts';
import { inAccess } from '../access/in-access.ts';
import type { CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printObjects } from '../output/print-objects.ts';
import { printable } from '../output/printable.ts';
import { table } from '../output/table.ts';
import type { FreezePlace } from './freeze-place.ts';

export interface FreezeGetOptions extends PlaceOptions, FreezePlace {
  readonly output: 'table' | 'json' | 'yaml';
  readonly headers: boolean;
}

/** `sluice freeze get` */
export function freezeGet(options: FreezeGetOptions, invocation: Invocation): Promise<CommandResult> {
  return inAccess(options, invocation, async (access) => {
    const { terminal } = invocation;
    const { output, headers, systemNamespace = access.systemNamespace } = options;
    const now = access.clock.now();
    const freezes = await freezesFor(access, options);
    if (output !== 'table') {
      printObjects(terminal, freezeKind, freezes, { output, headers, now });
      return 0;
    }
    if (freezes.length === 0) {
      terminal.note('No freezes found');
      return 0;
    }
    const rows = freezes.map((freeze) => {
      const rule = freezeRuleOf(freeze, systemNamespace);
      const isInForce = freezesAt([rule], now).length > 0;
      return [
        rule.name,
        rule.isInstallation ? 'all namespaces' : rule.namespace,
        isInForce ? 'in force' : 'ended',
        freeze.spec.until ?? '',
        printable(rule.startedBy ?? ''),
        age(rule.since, now),
        printable(rule.reason),
      ];
    });
    terminal.out.write(table(['Name', 'Freezes', 'State', 'Until', 'By', 'Age', 'Reason'], rows, { headers }));
    return 0;
  });
}

async function freezesFor(
  access: Access,
  { allNamespaces, systemNamespace = access.systemNamespace }: FreezePlace,
): Promise<Stored<Freeze>[]> {
  const { client, namespace } = access;
  if (allNamespaces === true) return [...(await client.list(freezeKind)).items];
  const lists = await Promise.all(
    [...new Set([systemNamespace, namespace])].map((where) => client.list(freezeKind, { namespace: where })),
  );
  return lists.flatMap(({ items }) => items);
}
