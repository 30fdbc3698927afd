import { SluiceError } from '../../foundation/sluice-error.ts';
import { type PackageNode, packageTree } from '../../package/upstream/package-tree.ts';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { inPackages } from '../access/in-packages.ts';
import type { CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { toJson, toYaml } from '../output/structured.ts';
import { table } from '../output/table.ts';

export interface TreeOptions extends PlaceOptions {
  readonly output: 'table' | 'json' | 'yaml';
  readonly headers: boolean;
  readonly behind?: boolean;
}

/** `sluice rpkg tree` */
export function rpkgTree(
  names: readonly string[],
  options: TreeOptions,
  invocation: Invocation,
): Promise<CommandResult> {
  return inPackages(options, invocation, async (access) => {
    const { terminal } = invocation;
    const { items } = await access.client.list(packageRevisionKind, { namespace: access.namespace });
    const packages = new Map(
      items.map(({ metadata, spec }) => [metadata.name, `${spec.repository}/${spec.packageName}`]),
    );
    const known = new Set(packages.values());
    const wanted = names.map((name) => {
      const path = packages.get(name) ?? name;
      if (known.has(path)) return path;
      throw new SluiceError(
        'NotFound',
        `package "${printable(name)}" not found; name it as <repository>/<package>, or by one of its revisions; "sluice rpkg tree" lists all`,
      );
    });
    let nodes = packageTree(items);
    if (wanted.length > 0) nodes = pruned(nodes, (node) => wanted.includes(node.package), true);
    if (options.behind === true) nodes = pruned(nodes, ({ behind = 0 }) => behind > 0, false);
    if (options.output === 'json') terminal.out.write(toJson(nodes));
    else if (options.output === 'yaml') terminal.out.write(toYaml(nodes));
    else if (nodes.length === 0)
      terminal.line(options.behind === true ? 'No package is behind its upstream.' : 'There are no packages.');
    else {
      const columns = ['Package', 'Latest', 'From', 'Behind', 'Open'];
      terminal.out.write(table(columns, [...rows(nodes, '')], { headers: options.headers }));
    }
    return (await access.unreadRepositories(access.namespace)) === 0 ? 0 : 1;
  });
}

/** The packages that a condition holds for, with those above them and, if `below`, all those below them. */
function pruned(nodes: readonly PackageNode[], holds: (node: PackageNode) => boolean, below: boolean): PackageNode[] {
  return nodes.flatMap((node) => {
    const isWanted = holds(node);
    if (isWanted && below) return [node];
    const downstream = pruned(node.downstream, holds, below);
    return isWanted || downstream.length > 0 ? [{ ...node, downstream }] : [];
  });
}

/** Lines of a tree, whose first cells begin with the branches that lead to them. */
function* rows(nodes: readonly PackageNode[], indent: string, isRoot = true): Generator<string[]> {
  for (const [index, node] of nodes.entries()) {
    const isLast = index === nodes.length - 1;
    const branch = isRoot ? '' : `${indent}${isLast ? '└─ ' : '├─ '}`;
    yield [
      `${branch}${node.package}`,
      node.latest === undefined ? '' : `v${node.latest.revision}`,
      node.from ?? '',
      node.behind === undefined ? '' : String(node.behind),
      node.open.map(openText).join(', '),
    ];
    yield* rows(node.downstream, isRoot ? '' : `${indent}${isLast ? '   ' : '│  '}`, false);
  }
}

function openText({ name, lifecycle, from }: PackageNode['open'][number]): string {
  return `${name} (${lifecycle}${from === undefined ? '' : `, from ${from}`})`;
}
