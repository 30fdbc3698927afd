import { type PackageRevision, packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import type { Access } from '../access/access.ts';
import { findRevision } from '../access/find-revision.ts';
import { inPackages } from '../access/in-packages.ts';
import type { ActorOptions, CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { type UpstreamOptions, upstreamAddress } from './upstream-argument.ts';

type Task = NonNullable<PackageRevision['spec']['tasks']>[number];

export interface InitOptions extends PlaceOptions, ActorOptions {
  readonly repository: string;
  readonly workspace: string;
  readonly description: string;
  readonly keywords?: readonly string[];
  readonly site?: string;
}

export interface CopyOptions extends PlaceOptions, ActorOptions {
  readonly workspace: string;
}

export interface CloneOptions extends PlaceOptions, ActorOptions, UpstreamOptions {
  readonly repository: string;
  readonly workspace: string;
}

/** `sluice rpkg init` */
export function rpkgInit(path: string, options: InitOptions, invocation: Invocation): Promise<CommandResult> {
  return inPackages(options, invocation, async (access) => {
    const { repository, workspace, description, keywords, site } = options;
    const init = {
      description,
      ...(keywords === undefined ? {} : { keywords }),
      ...(site === undefined ? {} : { site }),
    };
    return printCreated(
      await createRevision(access, { repository, path, workspace }, { type: 'init', init }),
      invocation,
    );
  });
}

/** `sluice rpkg clone` */
export function rpkgClone(
  source: string,
  path: string,
  options: CloneOptions,
  invocation: Invocation,
): Promise<CommandResult> {
  const git = upstreamAddress(source, options);
  return inPackages(options, invocation, async (access) => {
    const { repository, workspace } = options;
    const upstreamRef =
      git === undefined
        ? { upstreamRef: { name: (await findRevision(access, source)).metadata.name } }
        : { type: 'git' as const, git };
    const task = { type: 'clone', clone: { upstreamRef } } as const;
    return printCreated(await createRevision(access, { repository, path, workspace }, task), invocation);
  });
}

/** `sluice rpkg copy` */
export function rpkgCopy(sourceName: string, options: CopyOptions, invocation: Invocation): Promise<CommandResult> {
  return inPackages(options, invocation, async (access) => {
    const { metadata, spec } = await findRevision(access, sourceName);
    const place = { repository: spec.repository, path: spec.packageName, workspace: options.workspace };
    return printCreated(
      await createRevision(access, place, { type: 'edit', edit: { sourceRef: { name: metadata.name } } }),
      invocation,
    );
  });
}

/** Creates a draft by a task; returns its name. */
export async function createRevision(
  { client, namespace }: Access,
  { repository, path, workspace }: { readonly repository: string; readonly path: string; readonly workspace: string },
  task: Task,
): Promise<string> {
  const spec = { packageName: path, repository, workspaceName: workspace, lifecycle: 'Draft' as const, tasks: [task] };
  return (await client.create(packageRevisionKind, { metadata: { namespace }, spec })).metadata.name;
}

function printCreated(name: string, { terminal }: Invocation): CommandResult {
  terminal.line(`${printable(name)} created`);
  return 0;
}
