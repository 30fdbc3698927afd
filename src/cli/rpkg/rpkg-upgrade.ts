import { SluiceError } from '../../foundation/sluice-error.ts';
import { listed } from '../../foundation/text/counted.ts';
import type { UpdateStrategy } from '../../package/upstream/revision-source.ts';
import { type Upstream, upstreamFinder } from '../../package/upstream/upstream-of.ts';
import { type PackageRevision, packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import type { Stored } from '../../resource/object/object.ts';
import type { Access } from '../access/access.ts';
import { findRevision } from '../access/find-revision.ts';
import { inPackages } from '../access/in-packages.ts';
import type { ActorOptions, CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { toJson, toYaml } from '../output/structured.ts';
import { table } from '../output/table.ts';
import { createRevision } from './rpkg-create.ts';

/** Revisions that are named. */
const MAX_NAMED = 10;

type Revision = Stored<PackageRevision>;
type UpstreamOf = (revision: Revision) => Upstream | undefined;

export interface UpgradeOptions extends PlaceOptions, ActorOptions {
  readonly revision: number;
  readonly workspace?: string;
  readonly strategy: UpdateStrategy;
  readonly discover?: 'upstream' | 'downstream';
  readonly output: 'table' | 'json' | 'yaml';
}

/** What was done, as it is printed. */
interface Upgraded {
  /** The new draft. */
  readonly revision: string;
  readonly upgradedFrom: string;
  /** The upstream revision that it has the changes of. */
  readonly upstream: string;
  /** Such as local changes that upstream has overwritten. */
  readonly warnings: readonly string[];
}

/** `sluice rpkg upgrade` */
export function rpkgUpgrade(
  names: readonly string[],
  options: UpgradeOptions,
  invocation: Invocation,
): Promise<CommandResult> {
  const { discover, revision } = options;
  if (discover === undefined) {
    if (names.length !== 1) throw new SluiceError('InvalidInput', 'name the one package revision to upgrade');
    if (options.workspace === undefined)
      throw new SluiceError('InvalidInput', '--workspace is required: it names the new draft');
    if (revision < 0) throw new SluiceError('InvalidInput', '--revision must be positive; 0 is the latest one');
  }
  return inPackages(options, invocation, async (access, warnings) => {
    // The upstream can be in any repository, and so can its downstream packages.
    const { items } = await access.client.list(packageRevisionKind, { namespace: access.namespace });
    const upstreamOf = upstreamFinder(items);
    if (discover === 'upstream') {
      const named = await Promise.all(names.map((name) => findRevision(access, name)));
      const all = currentRevisions(items).filter(({ status }) => status?.upstreamLock !== undefined);
      printUpstreams(names.length === 0 ? all : named, upstreamOf, options, invocation);
    } else if (discover === 'downstream')
      printDownstreams(currentRevisions(items), names, upstreamOf, options, invocation);
    else {
      const upgraded = await upgrade(access, names[0] ?? '', options, upstreamOf);
      printUpgraded({ ...upgraded, warnings }, options, invocation);
      return 0;
    }
    return (await access.unreadRepositories(access.namespace)) === 0 ? 0 : 1;
  });
}

/** The latest published revision of each package, and its drafts and proposals: no other one can be upgraded with effect. */
function currentRevisions(revisions: readonly Revision[]): Revision[] {
  const packageOf = ({ spec }: Revision) => JSON.stringify([spec.repository, spec.packageName]);
  const latest = new Map<string, number>();
  for (const revision of revisions)
    latest.set(packageOf(revision), Math.max(revision.spec.revision ?? 0, latest.get(packageOf(revision)) ?? 0));
  return revisions.filter((revision) => {
    const { lifecycle, revision: number = 0 } = revision.spec;
    const isOpen = lifecycle === 'Draft' || lifecycle === 'Proposed';
    // What is on a branch alone counts where nothing is published with a number.
    return isOpen || number === latest.get(packageOf(revision)) || latest.get(packageOf(revision)) === 0;
  });
}

async function upgrade(
  access: Access,
  name: string,
  { revision, workspace = '', strategy }: UpgradeOptions,
  upstreamOf: UpstreamOf,
): Promise<Omit<Upgraded, 'warnings'>> {
  const local = await findRevision(access, name);
  const { lifecycle, repository, packageName } = local.spec;
  if (lifecycle !== 'Published' && lifecycle !== 'DeletionProposed') {
    throw new SluiceError(
      'Refused',
      `to upgrade a package, it must be in a published state, not "${lifecycle}"; approve ${name} first`,
    );
  }
  const upstream = upstreamOf(local);
  if (upstream?.current === undefined) throw noUpstream(local, upstream?.draft);
  const current = upstream.current.metadata.name;
  const target = revision === 0 ? upstream.newer.at(-1) : published(upstream, revision);
  if (target === undefined) {
    throw new SluiceError('NotFound', `no update available: ${current} is the latest revision of its package`);
  }
  const created = await createRevision(
    access,
    { repository, path: packageName, workspace },
    {
      type: 'upgrade',
      upgrade: {
        oldUpstreamRef: { name: current },
        newUpstreamRef: { name: target.metadata.name },
        localPackageRevisionRef: { name: local.metadata.name },
        strategy,
      },
    },
  );
  return { revision: created, upgradedFrom: local.metadata.name, upstream: target.metadata.name };
}

function printUpgraded(upgraded: Upgraded, { output }: PrintOptions, { terminal }: Invocation): void {
  const { revision, upgradedFrom } = upgraded;
  if (output === 'table') terminal.line(`${printable(upgradedFrom)} upgraded to ${printable(revision)}`);
  else terminal.out.write(output === 'json' ? toJson(upgraded) : toYaml(upgraded));
}

function published(upstream: Upstream, revision: number): Revision {
  const found = upstream.published.find(({ spec }) => spec.revision === revision);
  if (found !== undefined) return found;
  const path = upstream.published[0]?.spec.packageName;
  const known = listed(
    upstream.published.toReversed().map(({ spec }) => `v${spec.revision}`),
    MAX_NAMED,
  );
  throw new SluiceError('NotFound', `revision ${revision} does not exist for package ${path}; it has ${known}`);
}

function noUpstream({ metadata, status }: Revision, draft: string | undefined): SluiceError {
  const { name } = metadata;
  const lock = status?.upstreamLock?.git;
  if (lock === undefined)
    return new SluiceError(
      'NotFound',
      `upstream source not found for package revision ${name}: its Kptfile names none`,
    );
  const why =
    draft === undefined
      ? 'is in no registered repository, or no longer there'
      : `was the draft ${draft}, which is not published`;
  return new SluiceError('NotFound', `the upstream of ${name}, ${lock.repo}/${lock.directory}@${lock.ref}, ${why}`);
}

type PrintOptions = Pick<UpgradeOptions, 'output'>;

/** Prints the upstream versions that revisions could be upgraded to. */
function printUpstreams(
  revisions: readonly Revision[],
  upstreamOf: UpstreamOf,
  { output }: PrintOptions,
  { terminal }: Invocation,
): void {
  const found = revisions.map((revision) => {
    const upstream = upstreamOf(revision);
    return {
      revision: revision.metadata.name,
      ...(upstream?.repository === undefined ? {} : { upstreamRepository: upstream.repository }),
      updates: (upstream?.newer ?? []).map(({ metadata, spec }) => ({
        revision: metadata.name,
        number: spec.revision,
      })),
    };
  });
  if (output !== 'table') {
    terminal.out.write(documentOf(found, output));
    return;
  }
  const rows = found.map(({ revision, upstreamRepository = '', updates }) => {
    const newer = updates.map(({ number }) => `v${number}`).join(', ');
    return [revision, upstreamRepository, newer === '' ? 'No update available' : newer];
  });
  terminal.out.write(table(['Package revision', 'Upstream repository', 'Upstream updates'], rows));
}

/** Prints the packages that could be upgraded to the given revisions, or to any. */
function printDownstreams(
  revisions: readonly Revision[],
  names: readonly string[],
  upstreamOf: UpstreamOf,
  { output }: PrintOptions,
  { terminal }: Invocation,
): void {
  const found = revisions.flatMap((revision) => {
    const { current, draft, newer = [] } = upstreamOf(revision) ?? {};
    const before = draft === undefined ? '?' : `(draft "${draft}")`;
    const from = current === undefined ? before : `v${current.spec.revision}`;
    return newer
      .filter(({ metadata }) => names.length === 0 || names.includes(metadata.name))
      .map(({ metadata, spec }) => ({
        ...{ revision: metadata.name, downstream: revision.metadata.name },
        ...{ from, to: `v${spec.revision}` },
      }));
  });
  if (output !== 'table') {
    terminal.out.write(documentOf(found, output));
    return;
  }
  const rows = found.map(({ revision, downstream, from, to }) => [revision, downstream, `${from}->${to}`]);
  if (rows.length === 0) terminal.line('All downstream packages are up to date.');
  else terminal.out.write(table(['Package revision', 'Downstream package', 'Downstream update'], rows.sort()));
}

function documentOf(list: readonly object[], output: 'json' | 'yaml'): string {
  return output === 'json' ? toJson(list) : toYaml(list);
}
