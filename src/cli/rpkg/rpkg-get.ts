import { mapLimited } from '../../foundation/concurrency/map-limited.ts';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { type PackageRevision, packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { packageRevisionResourcesKind } from '../../resource/kinds/porch/package-revision-resources.ts';
import { keyOf, type Stored } from '../../resource/object/object.ts';
import type { Access } from '../access/access.ts';
import { findRevision } from '../access/find-revision.ts';
import { inPackages } from '../access/in-packages.ts';
import type { CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printObjects } from '../output/print-objects.ts';
import { printableLines } from '../output/printable.ts';
import type { OutputFormat } from '../output/structured.ts';
import { expectRepository } from '../repo/repo-get.ts';

export interface GetOptions extends PlaceOptions {
  readonly output: OutputFormat;
  readonly headers: boolean;
  readonly allNamespaces?: boolean;
  readonly repository?: string;
  readonly name?: string;
  readonly workspace?: string;
  readonly revision?: number;
  readonly lifecycle?: string;
  readonly selector?: string;
  readonly showKptfile?: boolean;
}

/** Packages that are read at a time. */
const READERS = 8;
/** `porchctl rpkg get --revision` takes this for any. */
const ANY_REVISION = -2;

/** `sluice rpkg get`. Exit code 1 if a repository could not be read, so that a list is never taken for complete when it is not. */
export function rpkgGet(names: readonly string[], options: GetOptions, invocation: Invocation): Promise<CommandResult> {
  return inPackages(options, invocation, async (access) => {
    if (options.showKptfile === true) return showKptfile(access, names, invocation);
    const found = await select(access, names, options);
    const shows = ['wide', 'json', 'yaml'].includes(options.output);
    const items = shows && access.server === undefined ? await evaluated(access, found) : found;
    printObjects(invocation.terminal, packageRevisionKind, items, {
      output: options.output,
      headers: options.headers,
      now: access.clock.now(),
      showNamespace: options.allNamespaces === true && names.length === 0,
      single: names.length === 1,
    });
    // What was named was found.
    if (names.length > 0 && access.server !== undefined) return 0;
    const namespace = options.allNamespaces === true ? undefined : access.namespace;
    return (await access.unreadRepositories(namespace)) === 0 ? 0 : 1;
  });
}

/** The revisions with their gates evaluated, which a server does all the time, and a data folder alone only for single objects. */
function evaluated({ client }: Access, found: readonly Stored<PackageRevision>[]): Promise<Stored<PackageRevision>[]> {
  return mapLimited(found, READERS, async (revision) => {
    const { lifecycle } = revision.spec;
    if (lifecycle !== 'Draft' && lifecycle !== 'Proposed') return revision;
    return (await client.find(packageRevisionKind, keyOf(revision))) ?? revision;
  });
}

async function select(
  access: Access,
  names: readonly string[],
  options: GetOptions,
): Promise<readonly Stored<PackageRevision>[]> {
  const { client } = access;
  const filter = {
    fieldSelector: fieldSelectorOf(options),
    ...(options.allNamespaces === true ? {} : { namespace: access.namespace }),
    ...(options.selector === undefined ? {} : { labelSelector: options.selector }),
  };
  if (names.length > 0) {
    const named: Stored<PackageRevision>[] = [];
    for (const name of new Set(names)) named.push(await findRevision(access, name));
    const items = named.sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
    if (filter.fieldSelector === '' && options.selector === undefined) return items;
    const wanted = new Set(names);
    const selected: Stored<PackageRevision>[] = [];
    for (const repository of new Set(items.map(({ spec }) => spec.repository))) {
      const fieldSelector = [`spec.repository=${repository}`, filter.fieldSelector]
        .filter((text) => text !== '')
        .join(',');
      selected.push(...(await client.list(packageRevisionKind, { ...filter, fieldSelector })).items);
    }
    return selected.filter(({ metadata }) => wanted.has(metadata.name));
  }
  if (options.repository !== undefined && options.allNamespaces !== true) await expectKnown(access, options.repository);
  return (await client.list(packageRevisionKind, filter)).items;
}

/** A misspelt repository has no packages, which would look like an empty one. Without the right to see repositories it stays empty. */
async function expectKnown(access: Access, name: string): Promise<void> {
  try {
    await expectRepository(access, name);
  } catch (error) {
    if (!isSluiceError(error, 'Refused') && !isSluiceError(error, 'Unsupported')) throw error;
  }
}

function fieldSelectorOf(options: GetOptions): string {
  const fields: [string, string | undefined][] = [
    ['spec.repository', options.repository],
    ['spec.packageName', options.name],
    ['spec.workspaceName', options.workspace],
    ['spec.lifecycle', options.lifecycle],
    [
      'spec.revision',
      options.revision === undefined || options.revision === ANY_REVISION ? undefined : String(options.revision),
    ],
  ];
  return fields.flatMap(([path, value]) => (value === undefined ? [] : [`${path}=${value}`])).join(',');
}

async function showKptfile(access: Access, names: readonly string[], { terminal }: Invocation): Promise<CommandResult> {
  const [name] = names;
  if (name === undefined || names.length > 1) {
    throw new SluiceError('InvalidInput', '--show-kptfile needs the name of one package revision');
  }
  const revision = await findRevision(access, name);
  const { spec } = await access.client.get(packageRevisionResourcesKind, keyOf(revision));
  const text = spec.resources?.Kptfile;
  if (text === undefined) throw new SluiceError('NotFound', `${name} has no Kptfile`);
  // A program gets the very bytes; a terminal is not steered by them.
  terminal.out.write(terminal.out.isTTY === true ? printableLines(text) : text);
  return 0;
}
