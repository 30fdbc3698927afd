import type { PackageRevision } from '../../package/package-revision.ts';
import { printable } from '../output/printable.ts';
import type { ActorOptions, DataOptions, Invocation, Outcome } from '../program/invocation.ts';
import { findRevision, inSession } from './in-session.ts';
import { type UpstreamOptions, upstreamAddress } from './upstream-argument.ts';

export interface InitOptions extends DataOptions, ActorOptions {
  readonly repository: string;
  readonly workspace: string;
  readonly description: string;
  readonly keywords?: readonly string[];
  readonly site?: string;
}

export interface CopyOptions extends DataOptions, ActorOptions {
  readonly workspace: string;
}

export interface CloneOptions extends DataOptions, ActorOptions, UpstreamOptions {
  readonly repository: string;
  readonly workspace: string;
}

/** `sluice rpkg init` */
export function rpkgInit(path: string, options: InitOptions, invocation: Invocation): Promise<Outcome> {
  return inSession(options, invocation, async (session) => {
    const { repository, workspace, description, keywords, site } = options;
    await session.openRepository(repository);
    const source = {
      type: 'init',
      description,
      ...(keywords === undefined ? {} : { keywords }),
      ...(site === undefined ? {} : { site }),
    } as const;
    return tell(
      await session.store.create(repository, { package: path, workspace, source }, session.context()),
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
): Promise<Outcome> {
  const git = upstreamAddress(source, options);
  return inSession(options, invocation, async (session) => {
    const { repository, workspace } = options;
    await session.openRepository(repository);
    const upstream = git === undefined ? { revision: (await findRevision(session, source)).name } : { git };
    const wanted = { package: path, workspace, source: { type: 'clone', upstream } } as const;
    return tell(await session.store.create(repository, wanted, session.context()), invocation);
  });
}

/** `sluice rpkg copy` */
export function rpkgCopy(sourceName: string, options: CopyOptions, invocation: Invocation): Promise<Outcome> {
  return inSession(options, invocation, async (session) => {
    const { key, name } = await findRevision(session, sourceName);
    const wanted = {
      package: key.package,
      workspace: options.workspace,
      source: { type: 'copy', source: name },
    } as const;
    return tell(await session.store.create(key.repository, wanted, session.context()), invocation);
  });
}

function tell(created: PackageRevision, { terminal }: Invocation): Outcome {
  terminal.line(`${printable(created.name)} created`);
  return 0;
}
