import { withVisibleDirection } from '../../../foundation/text/direction.ts';
import type { Client } from '../../../resource/client/client.ts';
import { SYSTEM_NAMESPACE } from '../../../resource/kinds/core/namespace.ts';
import { type Freeze, freezeKind } from '../../../resource/kinds/sluice/freeze.ts';
import type { Stored } from '../../../resource/object/object.ts';
import { type FreezeRule, freezesAt } from '../../model/policy/approval-rules.ts';

/** A Freeze as a rule; `systemNamespace` is the namespace whose freezes are in force in all. */
export function freezeRuleOf({ metadata, spec }: Stored<Freeze>, systemNamespace = SYSTEM_NAMESPACE): FreezeRule {
  const { namespace = '', name, creationTimestamp } = metadata;
  const until = spec.until === undefined ? undefined : Date.parse(spec.until);
  return {
    ...{ name, namespace, isInstallation: namespace === systemNamespace, reason: withVisibleDirection(spec.reason) },
    since: creationTimestamp,
    ...(spec.startedBy === undefined ? {} : { startedBy: withVisibleDirection(spec.startedBy) }),
    // What is no time ends nothing.
    ...(until === undefined || Number.isNaN(until) ? {} : { until }),
  };
}

/** The freezes that are in force in a namespace now, read from the storage: for code that is about to have an effect outside. */
export async function freezesInForce(
  client: Client,
  { namespace, systemNamespace = SYSTEM_NAMESPACE }: { readonly namespace: string; readonly systemNamespace?: string },
  now: number,
): Promise<FreezeRule[]> {
  const lists = await Promise.all(
    [...new Set([namespace, systemNamespace])].map((where) => client.list(freezeKind, { namespace: where })),
  );
  return freezesAt(
    lists.flatMap(({ items }) => items.map((freeze) => freezeRuleOf(freeze, systemNamespace))),
    now,
  );
}
