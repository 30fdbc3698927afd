import { deliveredOf } from '../../delivery/delivered/list-delivered.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { nearMisses } from '../../foundation/text/near-misses.ts';
import { type DeliveryTarget, deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import type { Stored } from '../../resource/object/object.ts';
import type { Access } from '../access/access.ts';
import { inPackages } from '../access/in-packages.ts';
import type { CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printObjects } from '../output/print-objects.ts';
import { table } from '../output/table.ts';
import { PACKAGE_COLUMNS, packageRows, paintStates, TARGET_COLUMNS, targetRow } from './target-rows.ts';

export interface TargetGetOptions extends PlaceOptions {
  readonly output: 'table' | 'json' | 'yaml';
  readonly headers: boolean;
  readonly allNamespaces?: boolean;
  readonly packages?: boolean;
  readonly unhealthy?: boolean;
}

const ALL_HEALTHY = 'No packages are delivered that are not both synced and healthy';

/** `sluice target get` */
export function targetGet(
  names: readonly string[],
  options: TargetGetOptions,
  invocation: Invocation,
): Promise<CommandResult> {
  return inPackages(options, invocation, async (access) => {
    const { terminal } = invocation;
    const { output, headers, allNamespaces = false } = options;
    const now = access.clock.now();
    const targets =
      names.length > 0
        ? await Promise.all(names.map((name) => expectTarget(access, name)))
        : await targetsOf(access, allNamespaces ? undefined : access.namespace);
    if (output !== 'table') {
      printObjects(terminal, deliveryTargetKind, targets, { output, headers, now, single: names.length === 1 });
      return 0;
    }
    const isEach = options.packages === true || options.unhealthy === true;
    const withNamespace = allNamespaces && names.length === 0;
    const columns = [...(withNamespace ? ['Namespace'] : []), ...(isEach ? PACKAGE_COLUMNS : TARGET_COLUMNS)];
    const isShown = ({ isGood }: { readonly isGood: boolean }) => options.unhealthy !== true || !isGood;
    const rows: string[][] = [];
    for (const target of targets) {
      const own = isEach
        ? packageRows(target, await deliveredOf(access.client, undefined, target), now, isShown)
        : [targetRow(target, now).map((cell) => terminal.copyable(cell, target.metadata.namespace))];
      rows.push(...own.map((row) => (withNamespace ? [target.metadata.namespace ?? '', ...row] : row)));
    }
    if (targets.length === 0) terminal.note(noTargets(allNamespaces ? undefined : access.namespace));
    else if (rows.length === 0) terminal.note(options.unhealthy === true ? ALL_HEALTHY : 'No packages are delivered');
    else terminal.out.write(table(columns, rows, { headers, paint: paintStates(terminal, columns) }));
    return 0;
  });
}

function noTargets(namespace: string | undefined): string {
  const where = namespace === undefined ? '' : ` in namespace ${namespace}`;
  return `No targets found${where}. To deliver packages, write a DeliveryTarget into a file of "sluice up --config <folder>", or apply it with kubectl; docs/delivery.md has an example.`;
}

/** A target by name; NotFound with what may have been meant. */
export async function expectTarget(access: Access, name: string): Promise<Stored<DeliveryTarget>> {
  const found = await access.client.find(deliveryTargetKind, { namespace: access.namespace, name });
  if (found !== undefined) return found;
  const near = nearMisses(
    name,
    (await targetsOf(access, access.namespace)).map((target) => target.metadata.name),
  );
  const hint = near.length === 0 ? '"sluice target get" lists what there is' : `did you mean ${near.join(' or ')}?`;
  throw new SluiceError('NotFound', `there is no target "${name}" in namespace ${access.namespace}; ${hint}`);
}

/** The targets of a namespace, or of all namespaces, by name. */
export async function targetsOf({ client }: Access, namespace: string | undefined): Promise<Stored<DeliveryTarget>[]> {
  const { items } = await client.list(deliveryTargetKind, namespace === undefined ? {} : { namespace });
  return items.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
}
