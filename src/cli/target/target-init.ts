import { normalizeDirectory } from '../../delivery/path-rules.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { isOnThisMachine } from '../../git/open/open-location.ts';
import { type DeliveryTarget, deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { inAccess } from '../access/in-access.ts';
import type { CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { toJson, toYaml } from '../output/structured.ts';
import { argoCdObjects, fluxObjects, type PrintedObject, type SyncedPlace } from './target-init-objects.ts';

export interface TargetInitOptions extends PlaceOptions {
  readonly output: 'yaml' | 'json';
  readonly target?: string;
  readonly name?: string;
  readonly repo?: string;
  readonly branch?: string;
  readonly directory?: string;
  readonly engineNamespace?: string;
  readonly nested?: boolean;
  readonly prune: boolean;
  readonly project: string;
  readonly destination: string;
  readonly wave?: number;
  readonly secret?: string;
  readonly dependsOn?: readonly string[];
  readonly clusterSecret?: string;
}

const ENGINE_NAMESPACES = { argocd: 'argocd', flux: 'flux-system' } as const;

/** `sluice target init`. */
export async function targetInit(
  engine: 'argocd' | 'flux',
  options: TargetInitOptions,
  invocation: Invocation,
): Promise<CommandResult> {
  const { terminal } = invocation;
  const { target: name } = options;
  const target =
    name === undefined
      ? undefined
      : await inAccess(options, invocation, ({ client, namespace }) =>
          client.get(deliveryTargetKind, { namespace, name }),
        );
  const place = placeOf(engine, options, target);
  if (isOnThisMachine(place.repo))
    terminal.note(
      `${terminal.style('yellow', 'warning:', terminal.err)} ${printable(`a cluster cannot read ${place.repo}; name the address of the repository as the cluster reaches it with --repo`)}`,
    );
  const secret = options.secret ?? target?.spec.git.secretRef?.name;
  const objects =
    engine === 'argocd'
      ? argoCdObjects(place, options)
      : fluxObjects(place, {
          dependsOn: options.dependsOn ?? [],
          ...(secret === undefined ? {} : { secret }),
          ...(options.clusterSecret === undefined ? {} : { clusterSecret: options.clusterSecret }),
        });
  terminal.out.write(options.output === 'json' ? toJson(listOf(objects)) : objects.map(document).join('---\n'));
  return 0;
}

function placeOf(
  engine: 'argocd' | 'flux',
  options: TargetInitOptions,
  target: DeliveryTarget | undefined,
): SyncedPlace {
  const git = target?.spec.git;
  const name = options.name ?? target?.metadata.name;
  const repo = options.repo ?? git?.repo;
  if (name === undefined || repo === undefined)
    throw new SluiceError('InvalidInput', 'name a target with --target, or give its --name and --repo');
  if (!/^[a-z0-9]([a-z0-9-]{0,51}[a-z0-9])?$/.test(name))
    throw new SluiceError(
      'InvalidInput',
      `name ${JSON.stringify(name.slice(0, 100))} cannot name the objects of an engine: use up to 53 lower-case letters, digits and dashes (--name)`,
    );
  return {
    ...{ name, repo, branch: options.branch ?? git?.branch ?? 'main' },
    directory: normalizeDirectory(options.directory ?? git?.directory ?? '/'),
    namespace: options.engineNamespace ?? ENGINE_NAMESPACES[engine],
    prune: options.prune,
    keepsEmptyFolders: target?.spec.onRemoval === 'empty',
    isFlat: options.nested === undefined ? target?.spec.render === 'passthrough' : !options.nested,
  };
}

function listOf(objects: readonly PrintedObject[]): Readonly<Record<string, unknown>> {
  return { apiVersion: 'v1', kind: 'List', items: objects.map(({ object }) => object) };
}

function document({ comment, object }: PrintedObject): string {
  return `${comment.map((line) => `# ${printable(line)}\n`).join('')}${toYaml(object)}`;
}
